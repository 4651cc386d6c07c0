"""`cantata replica` and `cantata serve --replica` as an operator starts and stops them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from fake_service import Behaviour, expected_pcm

from cantata.audio.pcm import encode_s16le
from cantata.distributed.key import KEY_VARIABLE

API = Path(__file__).parent.parent / "api"
PATIENCE_S = 120.0

REPLICA = """
import atexit, sys
from pathlib import Path
from types import SimpleNamespace
from cantata.config import ConversationDeployment
atexit.register(lambda: print("threads yield after", sys.getswitchinterval()))
sys.path.insert(0, {api!r})
from fake_service import FakeService
service = FakeService()
service.solo.behaviour.interval_s = 0.05
kinds = service.models, service.chat_models, service.image_models, service.transcription_models
names = [name for kind in kinds for name in kind]
deployment = SimpleNamespace(
    model_dump_json=lambda: "as deployed",
    realtime=ConversationDeployment(chat_url="http://there/v1", chat_model="a model"),
    hosts=(),
)
deployment.placed_here = deployment
plans = [
    SimpleNamespace(
        located=SimpleNamespace(plugin=SimpleNamespace(name=name), checkpoint=Path({folder!r})),
        deployment=deployment,
    )
    for name in names
]
sys.modules["cantata.pipeline.plan"] = SimpleNamespace(
    plan_services=lambda *given: plans,
    plan_recognizer=lambda plans: [],
    preload_stages=lambda plans: None,
    unload_when_idle=lambda plans, idle_s: list(plans),
)
sys.modules["cantata.pipeline.service"] = SimpleNamespace(
    create_service=lambda *plans, later, log_format, remote_stages: service
)
from cantata.cli.app import main
main()
"""


@contextmanager
def command(*words: str) -> Iterator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        KEY_VARIABLE: "a key of thirty-two bytes, about",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def shown(process: subprocess.Popen[str], pattern: str) -> str:
    """The first group of what a process prints, once it does."""
    assert process.stdout is not None
    lines: list[str] = []
    while not (found := re.search(pattern, line := process.stdout.readline())):
        assert line, lines
        lines.append(line)
    return found[1]


def test_two_commands_make_a_cluster_and_sigterm_cuts_no_stream(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 1000)
    replica = REPLICA.format(api=str(API), folder=str(tmp_path))
    with command("-c", replica, "replica", "--listen", "127.0.0.1:0") as speaking:
        # What a replica does not do is said, with what does it.
        told = shown(speaking, r"pass to `cantata serve --replica` instead: (.*)")
        assert told == "--chat-url http://there/v1 --chat-model 'a model'"
        address = shown(speaking, r"replica ready on (127\.0\.0\.1:\d+)")
        voices = ("--voices-dir", str(tmp_path / "voices"))
        serve = ("-m", "cantata", "serve", "--port", "0", "--replica", address, *voices)
        with command(*serve) as serving:
            url = shown(serving, r"(http://127\.0\.0\.1:\d+)(?= )")
            http = httpx.Client(base_url=url, timeout=PATIENCE_S, verify=False)
            with http:
                body = {"model": "solo", "input": "What is said.", "response_format": "pcm"}
                with http.stream("POST", "/v1/audio/speech", json=body) as answer:
                    parts = answer.iter_bytes()
                    heard = next(parts)
                    speaking.send_signal(signal.SIGTERM)
                    heard += b"".join(parts)
                assert heard == encode_s16le(expected_pcm("What is said.", Behaviour()))
                assert speaking.wait(PATIENCE_S) == 0
                # Reading a text holds sound up no longer than in a server.
                assert float(shown(speaking, r"threads yield after (\S+)")) <= 0.001
                deadline_s = time.monotonic() + PATIENCE_S
                while http.get("/ready").status_code != 503:
                    assert time.monotonic() < deadline_s
                assert http.post("/v1/audio/speech", json=body).status_code == 503
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(PATIENCE_S) in {0, -signal.SIGTERM}
