"""Served, a conversation is answered as the reference answers it: its text, and its sound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config.plugins import locate
from cantata.contract.chat_service import AnswerDelta, FinishReason, TextEnd
from cantata.contract.service import SpeechChunk
from cantata.pipeline.chat_model import PipelineChatModel
from cantata_models.qwen25_omni.random_checkpoint import TINY, write_checkpoint
from cantata_models.qwen25_omni.rows import Token2WavInput
from cantata_models.qwen25_omni.tests.parity.conversations import (
    END_GAIN,
    SEED,
    TALKER_POSITIONS,
    Conversation,
    conversation_named,
)
from cantata_models.qwen25_omni.tests.thinker_driver import build_request, golden
from cantata_models.qwen25_omni.tests.token2wav_checks import (
    CPU,
    WAVE_TOLERANCE,
    assert_close,
    hear,
)
from cantata_models.qwen25_omni.token2wav import WindowDecoder, load_decoder
from served import plan_small, started
from threads import threads

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
]

SERVED = [
    conversation_named(name)
    for name in (
        "system",
        "two_sounds",
        "resized_picture",
        "two_turns",
        "sound",
        "cut",
        "text_only",
    )
]
TOGETHER = 4
"""As many are admitted on any machine."""
Answered = tuple[int, FinishReason, NDArray[np.float32]]
"""Tokens of text, why it ended, and [N] samples."""
SETTINGS = {
    "thinker": {"max_model_len": 256},
    "talker": {"max_model_len": TALKER_POSITIONS},
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("omni"), TINY, SEED, end_gain=END_GAIN)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(checkpoint: Path) -> AsyncIterator[PipelineChatModel]:
    async with started(plan_small(checkpoint, **SETTINGS)) as service:
        yield service.chat_models["qwen2.5-omni"]


async def answered(model: PipelineChatModel, conversation: Conversation) -> Answered:
    """What the server answers."""
    tokens, reason, parts = 0, None, [np.zeros((0, 1), np.float32)]
    async with model.run(build_request(conversation)) as answer:
        assert answer.prompt_tokens == len(golden(conversation, "tokens"))
        async for event in answer:
            match event:
                case AnswerDelta():
                    tokens += event.tokens
                case TextEnd():
                    reason = event.reason
                case SpeechChunk():
                    parts.append(event.samples)
    assert reason is not None
    return tokens, reason, np.concatenate(parts)[:, 0]


async def test_each_answer_is_the_reference_s_alone_and_together(
    model: PipelineChatModel, checkpoint: Path
) -> None:
    alone = [await answered(model, one) for one in SERVED]
    together = await asyncio.gather(*(answered(model, one) for one in SERVED[:TOGETHER]))
    for one, other in zip(alone, together, strict=False):
        assert one[:2] == other[:2]
        np.testing.assert_array_equal(one[2], other[2])
    with threads(1):
        decoder = load_decoder(checkpoint, CPU)
        for conversation, answer in zip(SERVED, alone, strict=True):
            check(decoder, conversation, answer)


def check(decoder: WindowDecoder, conversation: Conversation, answer: Answered) -> None:
    """Fail if the text's length, why it ended, or the sound is not the reference's."""
    tokens, reason, samples = answer
    written, name = golden(conversation, "answer"), conversation.name
    cut = len(written) == conversation.max_tokens
    assert reason is (FinishReason.LENGTH if cut else FinishReason.STOP), name
    assert tokens == len(written) - (not cut), name
    if conversation.speaker is None:
        assert not len(samples), name
        return
    codes = golden(conversation, "codes").astype(np.int32)[:, None]
    spoken = {"a": (codes, Token2WavInput(conversation.speaker, seed=0))}
    expected = hear(decoder, spoken, len(codes))["a"]
    assert samples.shape == expected.shape, name
    # The stage's process may use other threads, and so add in another order.
    assert_close(samples, expected, WAVE_TOLERANCE)


async def test_answers_of_every_kind_are_served() -> None:
    """Else the test above would show less than it says."""
    kinds = {type(p).__name__ for c in SERVED for m in c.messages for p in m.parts}
    assert kinds == {"Text", "PromptSound", "PromptPicture"}
    ended = {len(golden(c, "answer")) < c.max_tokens for c in SERVED}
    assert ended == {True, False}
    assert {c.speaker for c in SERVED} == {"Chelsie", "Ethan", None}


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
