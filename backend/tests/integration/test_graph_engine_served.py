"""Whole servers with the engine that needs no vLLM, beside servers with vLLM's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from cantata.config.plugins import load_plugins
from cantata.contract.data.request import SpeechRequest
from cantata_bench.server import running_server
from served import plan_small, started

PLUGINS = {
    name: plugin
    for name, plugin in load_plugins().items()
    if any(stage.plain for stage in plugin.pipeline.stages)
}
EMBEDDED = next(plugin for plugin in PLUGINS.values() if plugin.embedded_checkpoint)
TEXTS = ("The morning train was late.", "Where is the library?", "Yes.", "Bread and cheese.")

pytestmark = pytest.mark.integration


async def speak_all(folder: Path, engine: str, name: str) -> list[NDArray[np.float32]]:
    """All texts together, sampled, by one server."""
    talker = next(stage.name for stage in PLUGINS[name].pipeline.stages if stage.plain)
    plan = plan_small(folder, **{talker: {"engine": engine}})  # type: ignore[arg-type]
    async with started(plan) as service:
        model = service.get_model(name)
        bounded = "max_new_tokens" in model.capabilities.options

        async def speak(number: int) -> NDArray[np.float32]:
            request = SpeechRequest(
                TEXTS[number],
                model.voices[number % len(model.voices)].id,
                seed=number,
                temperature=0.8 if number else 0.0,
                options={"max_new_tokens": 10 + 3 * number} if bounded else {},
            )
            async with model.run(request) as utterance:
                return np.concatenate([chunk.samples async for chunk in utterance])

        spoken = await asyncio.gather(*map(speak, range(len(TEXTS))))
        held = [await stage.get_counts() for stage in model.orchestrator.stages.values()]
    assert not any(count for counts in held for count in counts.values()), held
    return spoken


@pytest.mark.thorough
@pytest.mark.asyncio
@pytest.mark.parametrize("name", sorted(PLUGINS))
async def test_a_server_speaks_the_same_samples_with_either_engine(
    name: str, tmp_path: Path
) -> None:
    plugin, folder = PLUGINS[name], tmp_path
    if plugin.embedded_checkpoint is not None:
        folder = plugin.embedded_checkpoint
    else:
        assert plugin.write_random_checkpoint is not None
        plugin.write_random_checkpoint(tmp_path)
    expected, found = [await speak_all(folder, engine, name) for engine in ("vllm", "graphs")]
    for number, (usual, got) in enumerate(zip(expected, found, strict=True)):
        assert len(usual)
        np.testing.assert_array_equal(got, usual, err_msg=TEXTS[number])


def write_deployment(folder: Path) -> Sequence[str]:
    """Options of `cantata serve` for the embedded model with this engine."""
    raw = yaml.safe_load(EMBEDDED.deployment.read_text(encoding="utf-8"))
    for stage in EMBEDDED.pipeline.stages:
        if stage.plain:
            raw["stages"][stage.name]["engine"] = "graphs"
    path = folder / "deploy.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return ["--model", EMBEDDED.name, "--deploy", str(path)]


def test_a_machine_without_vllm_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of vLLM can be imported in the server or its stages, not even its kernels."""
    hidden = tmp_path / "hidden" / "vllm"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('vllm is hidden here')\n")
    path = os.pathsep.join([str(hidden.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    log = tmp_path / "server.log"
    body = {"input": TEXTS[0], "response_format": "pcm"}
    with running_server(log, options=write_deployment(tmp_path)) as server:
        answers = [
            httpx.post(f"{server.url}/v1/audio/speech", json=body | {"voice": voice}, timeout=60)
            for voice in (None, None)
        ]
        health = httpx.get(f"{server.url}/health", timeout=30)
    assert health.status_code == httpx.codes.OK
    assert [answer.status_code for answer in answers] == [httpx.codes.OK] * 2
    first, again = (np.frombuffer(answer.content, "<i2") for answer in answers)
    np.testing.assert_array_equal(first, again)
    assert len(first) > 12_000
    assert np.abs(first).max() > 1_000
    assert "TorchKernels" in log.read_text(encoding="utf-8")
