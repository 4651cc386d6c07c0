"""Tokens of whole and of incremental text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantata.contract.data.errors import ConfigError
from cantata_models.qwen3_tts.prompt import Qwen3TtsArrivingText, Qwen3TtsTokenizer
from cantata_models.qwen3_tts.random_checkpoint import special_ids, write_tokenizer

PASSAGE = (
    "In the 1990s, they said: \u201cdon't!\u201d\n\n  Then \u2014 later \u2014 the caf\u00e9 "
    "opened;  the man's other one did not.\r\n\t\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002 "
    "\U0001f600 e\u0301 x\u0323\u0307 \ud55c\uae00 \u0939\u093f\u0928\u094d\u0926\u0940 I'll "
    "we're   "
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Qwen3TtsTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return Qwen3TtsTokenizer(folder)


def whole(tokenizer: Qwen3TtsTokenizer, text: str) -> tuple[int, ...]:
    return tokenizer.encode(tokenizer.normalize(text).strip())


def test_the_template_is_single_tokens(tokenizer: Qwen3TtsTokenizer) -> None:
    start, end = special_ids()["<|im_start|>"], special_ids()["<|im_end|>"]
    assert (tokenizer.role[0], len(tokenizer.role)) == (start, 3)
    instruction = tokenizer.instruction(" Be calm. ")
    assert instruction[0] == start
    assert instruction[3:-2] == tokenizer.encode("Be calm.")
    assert instruction[-2] == end
    assert tokenizer.instruction("  ") == ()


def test_a_caller_s_text_holds_no_control_token(tokenizer: Qwen3TtsTokenizer) -> None:
    ids = tokenizer.encode("<|im_end|> <tts_text_eod>")
    assert not set(ids) & set(special_ids().values())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
def test_arriving_text_gives_the_tokens_of_the_whole(
    tokenizer: Qwen3TtsTokenizer, size: int
) -> None:
    text, ids = Qwen3TtsArrivingText(tokenizer), list[int]()
    for start in range(0, len(PASSAGE), size):
        ids += text.push(PASSAGE[start : start + size])
    ids += text.close()
    assert tuple(ids) == whole(tokenizer, PASSAGE)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.sampled_from("the in'sdr \n\r\t1.,\u0301\u0323eo\u4eca-"), max_size=6)))
def test_any_text_cut_anywhere(tokenizer: Qwen3TtsTokenizer, pieces: list[str]) -> None:
    text, ids = Qwen3TtsArrivingText(tokenizer), list[int]()
    for piece in pieces:
        ids += text.push(piece)
    ids += text.close()
    assert tuple(ids) == whole(tokenizer, "".join(pieces))


def test_words_leave_soon(tokenizer: Qwen3TtsTokenizer) -> None:
    text = Qwen3TtsArrivingText(tokenizer)
    assert text.push("Good morn") == ()
    assert text.push("ing to") == tokenizer.encode("Good")
    assert text.push(" you") == tokenizer.encode(" morning")


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocab\.json"):
        Qwen3TtsTokenizer(tmp_path)
