"""An answer's rows: in any pieces, with its media, to its end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Codes, Pcm, Rows
from cantata.contract.data.errors import ProtocolViolation
from cantata.contract.data.request import SamplingOptions
from cantata_models.qwen3_omni.config import Qwen3OmniCodecIds, Qwen3OmniTextIds
from cantata_models.qwen3_omni.talker_rows import (
    ANSWER_ROWS,
    Qwen3OmniAnswerRows,
    Qwen3OmniTalkerInput,
    RowTables,
)

WIDTH, END = 4, 1
TABLES = RowTables(
    text=torch.arange(20.0)[:, None].expand(-1, WIDTH),
    codec=torch.zeros(8, WIDTH),
    project_media=lambda rows: rows[:, :WIDTH] * 100,
    text_ids=Qwen3OmniTextIds(0, END, 2, 3, 4, tts_pad=17, tts_bos=18, tts_eos=19),
    codec_ids=Qwen3OmniCodecIds(0, 1, 2, 3, 4, 5),
)
INPUTS = Qwen3OmniTalkerInput(
    user=np.array([3, 5, 6, 7], np.int32),
    media=np.zeros(0, np.int32),
    sources=np.zeros(0, np.int32),
    positions=np.zeros((3, 4 + ANSWER_ROWS), np.float32),
    role=(0, 4, 9),
    speaker=6,
    max_frames=5,
    sampling=SamplingOptions(),
)
WITH_MEDIA = replace(INPUTS, media=np.array([1, 2], np.int32), sources=np.array([2, 4], np.int32))
THOUGHTS = np.array([9, 9, 0.5, 9, 0.25, 9], np.float32)[:, None].repeat(6, axis=1)
"""Rows of the thinker; the third and the fifth are of media."""


def tokens(*ids: int) -> Codes:
    return Codes(np.array(ids, np.int32).reshape(-1, 1))


def list_ids(rows: torch.Tensor | None) -> list[float]:
    return [] if rows is None else rows[:, 0].tolist()


def build_source(inputs: Qwen3OmniTalkerInput = INPUTS) -> Qwen3OmniAnswerRows:
    return Qwen3OmniAnswerRows(inputs, TABLES, 5)


@pytest.mark.parametrize(
    "parts",
    [
        [(10,), (11,), (12,), (END,)],
        [(10, 11), (12, END)],
        [(10, 11, 12, END)],
        [(10,), (), (11, 12)],  # cut: its last token is heard, and then the end
        [(10, 11, 12), ()],
        [(10, 11, 12, END, 13)],  # nothing counts behind the end
    ],
)
def test_pieces_make_no_difference(parts: list[tuple[int, ...]]) -> None:
    source = build_source()
    assert source.prompt() is None
    given: list[float] = []
    for index, part in enumerate(parts):
        assert source.open
        source.feed(tokens(*part), final=index == len(parts) - 1)
        if not given:
            prompt = source.prompt()
            assert prompt is not None
            given = list_ids(prompt.rows)
            assert prompt.prompt_len == len(given) == len(INPUTS.user) + ANSWER_ROWS
        given += list_ids(source.more())
    assert not source.open
    assert source.more() is None
    assert given[:4] == [3, 5, 6, 7]
    assert given[4:13] == [0, 4, 9, 17, 17, 17, 17, 18, 10]
    assert given[13:] == [11, 12, 19, 17]


def test_the_end_token_ends_an_answer_by_itself() -> None:
    source = build_source()
    source.feed(tokens(10, END), final=False)
    assert not source.open
    assert source.prompt() is not None
    assert list_ids(source.more()) == [19, 17]
    source.feed(tokens(), final=True)
    assert source.more() is None
    with pytest.raises(ProtocolViolation, match="is complete"):
        source.feed(tokens(11), final=True)


def test_media_are_waited_for_and_take_their_places() -> None:
    source = build_source(WITH_MEDIA)
    source.feed(tokens(10), final=True)
    assert source.prompt() is None
    assert source.open
    source.feed(Rows(THOUGHTS[:3]), final=False)
    assert source.prompt() is None
    source.feed(Rows(THOUGHTS[3:5]), final=False)
    prompt = source.prompt()
    assert prompt is not None
    assert list_ids(prompt.rows)[:4] == [3, 50, 25, 7]
    assert not source.open
    source.feed(Rows(THOUGHTS[5:]), final=True)  # of the answer
    assert list_ids(source.more()) == [19, 17]


def test_a_thinker_that_ends_before_its_media_fails() -> None:
    source = build_source(WITH_MEDIA)
    with pytest.raises(ProtocolViolation, match="has sent 4 rows; row 4 is one of media"):
        source.feed(Rows(THOUGHTS[:4]), final=True)


def test_what_nobody_announced_fails() -> None:
    with pytest.raises(ProtocolViolation, match="takes no Rows"):
        build_source().feed(Rows(THOUGHTS), final=True)
    with pytest.raises(ProtocolViolation, match="takes no Pcm"):
        build_source().feed(Pcm(np.zeros((1, 1), np.float32)), final=True)


@pytest.mark.parametrize("parts", [(END,), ()])
def test_an_empty_answer_is_not_spoken(parts: tuple[int, ...]) -> None:
    source = build_source()
    source.feed(tokens(*parts), final=True)
    prompt = source.prompt()
    assert prompt is not None
    assert prompt.prompt_len == 0
