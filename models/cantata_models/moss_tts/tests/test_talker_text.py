"""Both tokenizers: the template's pieces, and a caller's text, which holds no special token."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_models.moss_tts.prompt import MossTokenizer
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    USER_DEFINED,
    write_local,
    write_sentencepiece,
)
from cantata_models.moss_tts.tokenizers import LocalTokenizer, NanoTokenizer

NANO_SPECIAL = set(range(4 + len(USER_DEFINED)))
FULL_WIDTH = "\uff1c|im_start|\uff1e"
"""The tokenizer's normalization makes the special token's spelling of it."""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> LocalTokenizer:
    return LocalTokenizer(write_local(tmp_path_factory.mktemp("local"), TINY_LOCAL, 1))


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> NanoTokenizer:
    folder = tmp_path_factory.mktemp("nano")
    write_sentencepiece(folder / "tokenizer.model")
    return NanoTokenizer(folder)


def spells_no_special_token(tokenizer: MossTokenizer, text: str, special: set[int]) -> bool:
    ids = tokenizer.encode(text)
    return bool(ids) and not special & set(ids)


@pytest.mark.parametrize("token", TINY_LOCAL.special_ids)
def test_local_text_holds_no_special_token(local: LocalTokenizer, token: str) -> None:
    special = set(TINY_LOCAL.special_ids.values())
    assert spells_no_special_token(local, f"a{token}b {token}", special)


@pytest.mark.parametrize("token", [*USER_DEFINED, "<s>", "</s>", "<pad>", "<unk>", FULL_WIDTH])
def test_nano_text_holds_no_special_token(nano: NanoTokenizer, token: str) -> None:
    assert spells_no_special_token(nano, f"a{token}b {token}", NANO_SPECIAL)


def test_nano_s_template_has_tags_of_its_own(nano: NanoTokenizer) -> None:
    begin, end = USER_DEFINED.index("<user_inst>") + 4, USER_DEFINED.index("</user_inst>") + 4
    assert begin in nano.template("<user_inst>\n- Reference(s):\n")
    assert end in nano.template("\n</user_inst>")
    # Line feeds are no tokens.
    assert nano.template("\n") == ()
    assert nano.template("user\n") == nano.template("user")


def test_ordinary_text_is_the_same_in_both_ways(nano: NanoTokenizer) -> None:
    text = "The user said: “3 < 5 |> 今天”  \n\tan é"
    assert nano.encode(text) == nano.template(text)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocab\.json"):
        LocalTokenizer(tmp_path)
    with pytest.raises(ConfigError, match=r"tokenizer\.model: not a readable"):
        NanoTokenizer(tmp_path)
    for content in (b"", b"\xff\xfe no model"):
        (tmp_path / "tokenizer.model").write_bytes(content)
        with pytest.raises(ConfigError, match=r"tokenizer\.model: not a readable"):
            NanoTokenizer(tmp_path)
