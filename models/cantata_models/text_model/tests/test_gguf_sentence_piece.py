"""SentencePiece's vocabularies in GGUF files: its own package is the judge."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from gguf import GGUFWriter

from cantata_models.text_model.gguf.reader import GgufFile
from cantata_models.text_model.gguf.tokenizer import make_tokenizer
from cantata_models.text_model.tests.gguf_writer import TEMPLATE, TEXT

CASES = (
    TEXT,
    "  two  blanks at first",
    "the boats\n\n\nand   the light",
    "\u65e5\u672c \U0001f600 unseen",
    "x",
)


def _train(dummy_prefix: bool) -> Any:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.splitlines() * 3),
        model_writer=model,
        model_type="bpe",
        vocab_size=340,
        byte_fallback=True,
        add_dummy_prefix=dummy_prefix,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        user_defined_symbols=["<start_of_turn>", "<end_of_turn>"],
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def _type(pieces: Any, index: int) -> int:
    kinds = ((pieces.IsUnknown, 2), (pieces.IsControl, 3), (pieces.IsUnused, 5), (pieces.IsByte, 6))
    if index in (pieces.PieceToId("<start_of_turn>"), pieces.PieceToId("<end_of_turn>")):
        return 4
    return next((kind for is_kind, kind in kinds if is_kind(index)), 1)


@pytest.mark.parametrize("dummy_prefix", [False, True])
def test_tokens_are_sentence_piece_s(tmp_path: Path, dummy_prefix: bool) -> None:
    pieces = _train(dummy_prefix)
    indices = range(pieces.GetPieceSize())
    writer = GGUFWriter(tmp_path / "words.gguf", "gemma3")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([pieces.IdToPiece(index) for index in indices])
    writer.add_token_scores([pieces.GetScore(index) for index in indices])
    writer.add_token_types([_type(pieces, index) for index in indices])
    writer.add_bos_token_id(pieces.bos_id())
    writer.add_eos_token_id(pieces.eos_id())
    writer.add_unk_token_id(pieces.unk_id())
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(dummy_prefix)
    writer.add_chat_template(TEMPLATE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tokenizer = make_tokenizer(GgufFile(tmp_path / "words.gguf"))
    for text in CASES:
        expected = pieces.EncodeAsIds(text)
        assert tokenizer.encode(text, add_special_tokens=False) == expected, text
        assert tokenizer.decode(expected) == text
    assert tokenizer.encode("x")[0] == pieces.bos_id()
    turn = tokenizer.encode("<end_of_turn>", add_special_tokens=False)
    assert turn[-1] == pieces.PieceToId("<end_of_turn>")
