"""A voice of one ONNX file: word times, no vLLM in its process, and what speaks by default."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cantata.config import load_deployment, plugins
from cantata.config.plugins import LocatedModel, list_embedded_models, load_plugins, locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SpeechRequest
from cantata.pipeline import spawning
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_voice.onnx_file import write_voice
from tiny_voice.plugin import PLUGIN, VoiceBuilder

pytestmark = pytest.mark.integration


async def test_words_have_times_and_its_process_has_no_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests' fork server has imported what stages of all kinds need.
    monkeypatch.setattr(spawning, "METHOD", "spawn")
    write_voice(tmp_path)
    located = LocatedModel(PLUGIN, tmp_path)
    plan = ServicePlan(
        located, PLUGIN.pipeline, load_deployment(PLUGIN.deployment, PLUGIN.pipeline)
    )
    service = create_service(plan)
    await service.start()
    try:
        model = service.get_model(PLUGIN.name)
        text = "One two, three. [pause 200ms] Four!"
        async with model.run(SpeechRequest(text, "low")) as utterance:
            chunks = [chunk async for chunk in utterance]
        words = [word for chunk in chunks for word in chunk.words]
        assert [text[w.text_start : w.text_end] for w in words] == ["One", "two", "three", "Four"]
        times = [time for word in words for time in (word.start_s, word.end_s)]
        assert times == sorted(times)
        seconds = sum(len(chunk.samples) for chunk in chunks) / model.sample_rate
        assert words[-1].end_s <= seconds
        assert words[-1].start_s - words[-2].end_s >= 0.2
        pid = model.orchestrator.stages["voice"].pid
        mapped = await asyncio.to_thread(Path(f"/proc/{pid}/maps").read_text)
        assert "onnxruntime" in mapped
        assert "vllm" not in mapped
    finally:
        await service.stop()


class MisdeclaredBuilder(VoiceBuilder):
    capabilities = replace(VoiceBuilder.capabilities, sample_rate=24_000)


async def test_a_declared_sample_rate_must_be_the_stage_s(tmp_path: Path) -> None:
    write_voice(tmp_path)
    plugin = replace(PLUGIN, load_builder=lambda _: MisdeclaredBuilder())
    deployment = load_deployment(PLUGIN.deployment, PLUGIN.pipeline)
    plan = ServicePlan(LocatedModel(plugin, tmp_path), PLUGIN.pipeline, deployment)
    service = create_service(plan)
    assert service.get_model(PLUGIN.name).sample_rate == 24_000
    with pytest.raises(ConfigError, match="24000 Hz and makes 1 channels of 16000 Hz"):
        await service.start()


def test_a_model_that_ships_its_weights_does_not_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = locate(None).plugin.name
    write_voice(tmp_path)
    first = replace(PLUGIN, name="aardvark", embedded_checkpoint=tmp_path)
    known = {"aardvark": first, **load_plugins()}
    monkeypatch.setattr(plugins, "load_plugins", lambda: known)
    assert locate(None).plugin.name == usual
    assert list_embedded_models()[0] == usual
    assert "aardvark" in list_embedded_models()


@pytest.mark.parametrize("claims", [0, 2])
def test_one_model_is_the_default(claims: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {n: replace(PLUGIN, name=n, is_default=i < claims) for i, n in enumerate("ab")}
    monkeypatch.setattr(plugins, "load_plugins", lambda: known)
    with pytest.raises(ConfigError, match=r"--model: \['a', 'b'\]"):
        locate(None)
