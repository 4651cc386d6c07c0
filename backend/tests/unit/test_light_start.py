"""What a command imports: errors are reported before torch, and `say` needs neither vLLM nor a web
framework."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cantata.config.plugins import load_plugins
from cantata.contract.model.factory import Factory

NEVER_TO_SAY = (
    *("vllm", "transformers", "fastapi", "starlette", "uvicorn", "gradio"),
    *("scipy", "sympy", "triton", "openai", "opentelemetry", "torch._dynamo", "torch._inductor"),
)
PREPARED_BY_TRANSFORMERS = {
    *("bagel", "qwen2.5-omni", "qwen3-asr", "qwen3-omni", "smollm2", "text-model")
}
"""Models whose requests need transformers' chat templates or processors, which import torch."""
MAX_CPU = 2.5
"""CPU time of a sentence, whole, in times of `import torch`."""

RUN = """
import json, sys
from typer.testing import CliRunner
from cantata.cli.app import app
results = [CliRunner().invoke(app, arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps({
    "exits": [[result.exit_code, result.stderr] for result in results],
    "modules": sorted(sys.modules),
}))
"""


def run(*commands: list[str]) -> tuple[list[tuple[int, str]], set[str]]:
    """Exit code and errors of each command, and all modules that a fresh process imported."""
    words = [sys.executable, "-c", RUN, json.dumps(commands)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(done.stdout)
    return [(code, errors) for code, errors in said["exits"]], set(said["modules"])


def cpu_s(*arguments: str) -> float:
    """CPU seconds of a Python process."""

    def so_far() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = so_far()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=120)
    return so_far() - before


@pytest.mark.parametrize("model", [[], ["--model", "solo"]], ids=["default", "solo"])
def test_say_imports_no_server_and_no_vllm(tmp_path: Path, model: list[str]) -> None:
    ((code, errors),), modules = run(["say", "Hello.", *model, "-o", str(tmp_path / "hello.wav")])
    assert code == 0, errors
    assert "torch" in modules
    assert modules.isdisjoint(NEVER_TO_SAY), modules & set(NEVER_TO_SAY)


def test_say_takes_hardly_more_than_importing_torch(tmp_path: Path) -> None:
    say = ("-m", "cantata", "say", "Hello.", "-o", str(tmp_path / "hello.wav"))
    ratios = []
    # CPU time hardly depends on what else runs; caches do, so the better of three counts.
    for _ in range(3):
        ratios.append(cpu_s(*say) / cpu_s("-c", "import torch"))
        if ratios[-1] <= MAX_CPU:
            return
    pytest.fail(f"`cantata say` takes {ratios} times the CPU time of `import torch`")


def test_mistakes_are_reported_before_heavy_imports(tmp_path: Path) -> None:
    bad, on_gpu = tmp_path / "bad.yaml", tmp_path / "gpu.yaml"
    bad.write_text("stages: 3\n", encoding="utf-8")
    on_gpu.write_text("stages: {talker: {device: cuda}, decoder: {}}\n", encoding="utf-8")
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    voices = str(tmp_path / "file" / "voices")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told, modules = run(
            ["say", "Hello.", "-o", str(tmp_path / "x.wav"), "--voice", "nobody"],
            ["say", "Wait [pause 900s].", "--model", "solo", "-o", str(tmp_path / "x.wav")],
            ["say", "Hello.", "-o", str(tmp_path / "nowhere" / "x.wav")],
            ["serve", "--port", port],
            ["serve", "--port", "0", "--deploy", str(bad)],
            ["serve", "--port", "0", "--model", "nobody"],
            ["serve", "--port", "0", "--voices-dir", voices],
            ["serve", "--port", "0", "--model", "solo", "--deploy", str(on_gpu)],
        )
    expected = ("nobody", "pause", "nowhere", port, "stages", "nobody", voices, "cuda")
    for (code, errors), word in zip(told, expected, strict=True):
        assert code == 1, errors
        assert word in errors, errors
        assert len(errors.strip().splitlines()) <= 3, errors
    heavy = {"torch", "vllm", "gradio", "transformers", "scipy"}
    assert modules.isdisjoint(heavy), modules & heavy


def test_the_api_builds_requests_without_torch() -> None:
    builders = [
        factory.target
        for name, plugin in load_plugins().items()
        if name not in PREPARED_BY_TRANSFORMERS
        for factory in (
            *(plugin.load_builder, plugin.load_chat_builder),
            *(plugin.load_image_builder, plugin.load_transcription_builder),
        )
        if isinstance(factory, Factory)
    ]
    assert len(builders) > 10
    code = (
        "import sys\n"
        "from cantata.contract.model.factory import resolve\n"
        "for target in sys.argv[1:]: resolve(target)\n"
        "sys.exit(' '.join({'torch', 'transformers', 'vllm'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *builders], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
