"""Served, a conversation is answered as the reference answers it: its text, and its sound."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.config.plugins import locate
from cantata.contract.chat_service import AnswerDelta, FinishReason, TextEnd
from cantata.contract.service import SpeechChunk
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.service import create_service
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.parity.scenarios import SCENARIOS, Qwen3OmniScenario
from cantata_models.qwen3_omni.tests.parity.write_goldens import PCM_STRIDE
from cantata_models.qwen3_omni.tests.talker_driver import golden
from cantata_models.qwen3_omni.tests.thinker_driver import build_request
from served import plan_small
from talking import SPOKEN, WIRE_RATE, assert_idle, cancelled, speech, talker

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SEED = 1
WHOLE = [
    scenario
    for scenario in SCENARIOS
    # The reference loses the last token of an answer that is cut, and so what is spoken of it.
    if scenario.seed == SEED and len(golden(scenario, "answer")) < scenario.max_tokens
]
CUT = next(scenario for scenario in SCENARIOS if scenario.name == "cut")
WAVE_ATOL = 1e-4
TWO_S = 2 * 2 * WIRE_RATE
"""Bytes."""


@dataclass(frozen=True)
class Served:
    """The model, and where clients find it."""

    model: PipelineChatModel
    url: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = write_checkpoint(tmp_path_factory.mktemp("omni"), TINY, SEED)
    # Greedy where a request says nothing, as in a spoken session: random codes end by chance.
    generation = folder / "generation_config.json"
    settings = json.loads(generation.read_text(encoding="utf-8"))
    settings |= {"do_sample": False, "talker_do_sample": False}
    generation.write_text(json.dumps(settings), encoding="utf-8")
    long = {"max_model_len": 512}
    service = create_service(plan_small(folder, thinker=long, talker=long))
    app = create_app(service)
    listener = listen("127.0.0.1", 0)
    server = make_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(120):
        await app.state.context.lifecycle.settled.wait()
    yield Served(service.chat_models["qwen3-omni"], get_url(listener))
    server.stop()
    await serving
    listener.close()


@pytest.fixture(scope="module")
def model(served: Served) -> PipelineChatModel:
    return served.model


async def answered(
    model: PipelineChatModel, scenario: Qwen3OmniScenario
) -> tuple[int, FinishReason, NDArray[np.float32]]:
    """Tokens of text, why it ended, and the samples of the reference's frames."""
    most = 0 if scenario.speaker is None else int(golden(scenario, "samples"))
    tokens, reason, parts = 0, None, [np.zeros((0, 1), np.float32)]
    async with model.run(build_request(scenario)) as answer:
        assert answer.prompt_tokens == len(golden(scenario, "tokens"))
        async for event in answer:
            match event:
                case AnswerDelta():
                    tokens += event.tokens
                case TextEnd():
                    reason = event.reason
                case SpeechChunk():
                    parts.append(event.samples)
            if reason is not None and sum(map(len, parts)) >= most:
                break  # the reference was stopped after some frames
    assert reason is not None
    return tokens, reason, np.concatenate(parts)[:most, 0]


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", WHOLE, ids=lambda scenario: scenario.name)
async def test_an_answer_is_the_reference_s(
    model: PipelineChatModel, scenario: Qwen3OmniScenario
) -> None:
    tokens, reason, samples = await answered(model, scenario)
    assert reason is FinishReason.STOP
    assert tokens == len(golden(scenario, "answer")) - 1
    theirs = golden(scenario, "wave")
    np.testing.assert_allclose(samples[::PCM_STRIDE], theirs, rtol=0, atol=WAVE_ATOL)


async def test_together_each_says_what_it_says_alone(model: PipelineChatModel) -> None:
    alone = [await answered(model, scenario) for scenario in WHOLE]
    together = await asyncio.gather(*(answered(model, scenario) for scenario in WHOLE[:4]))
    for one, other in zip(alone, together, strict=False):
        assert one[:2] == other[:2]
        np.testing.assert_array_equal(one[2], other[2])


async def test_an_answer_that_is_cut_says_so(model: PipelineChatModel) -> None:
    tokens, reason, samples = await answered(model, CUT)
    assert (tokens, reason) == (CUT.max_tokens, FinishReason.LENGTH)
    assert np.abs(samples).max() > 0


async def test_a_spoken_session_and_a_barge_in(served: Served) -> None:
    """Its speech of random weights lasts until somebody stops it."""
    async with talker(served.url, "?model=qwen3-omni") as c:
        session = await c.update(max_output_tokens=8, audio={"output": {"voice": "alloy"}})
        assert session["audio"]["output"]["voice"] == served.model.voices[0].id
        await c.say(speech())
        while len(c.sound()) < TWO_S:
            await c.until("response.output_audio.delta")
        assert "response.done" not in c.types()
        c.events.clear()
        await c.say(speech())
        await c.until("input_audio_buffer.speech_started")
        await c.until("response.done")
        place = c.types().index("input_audio_buffer.speech_started")
        assert c.types()[place + 1 :] == SPOKEN[2:], "no sound after it"
        cancelled(c, "turn_detected")
        # The next turn is answered in the same session, with all before it.
        first = c.events[-1]["response"]["usage"]
        await c.until("response.output_audio.delta")
        await c.send("response.cancel")
        second = (await c.until("response.done"))["response"]["usage"]
        assert second["input_tokens"] > 2 * first["input_tokens"] > 0
    await assert_idle(served.url)


async def test_a_checkpoint_that_only_writes_has_no_stage_that_speaks(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TINY, SEED)
    config = folder / "config.json"
    config.write_text(
        config.read_text(encoding="utf-8").replace(
            '"enable_audio_output": true', '"enable_audio_output": false'
        ),
        encoding="utf-8",
    )
    located = locate(str(folder))
    assert [stage.name for stage in located.pipeline.stages] == ["encoder", "thinker"]
    assert located.plugin.load_chat_builder is not None
    assert located.plugin.load_chat_builder(folder).voices == ()
