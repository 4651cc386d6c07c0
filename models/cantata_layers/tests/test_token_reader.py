"""An answer's tokens become the text that transformers' tokenizer makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import Qwen2Tokenizer

from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.random_qwen_tokenizer import ORDINARY_TOKENS, write_qwen_tokenizer
from cantata_layers.token_text import TokenReader

TEXT = " Good morning,\n\nthe Übersetzung: 你叫什么 (👋🏽)  in 3 Tönen… "


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_text_is_the_reference_s_and_no_character_is_cut(tmp_path: Path, at_once: int) -> None:
    write_qwen_tokenizer(
        tmp_path, {"<|endoftext|>": ORDINARY_TOKENS, "<|im_end|>": ORDINARY_TOKENS + 1}
    )
    reference = Qwen2Tokenizer.from_pretrained(str(tmp_path))
    tokens = [*reference(TEXT)["input_ids"], ORDINARY_TOKENS + 1]
    assert reference.decode(tokens, skip_special_tokens=True) == TEXT
    reader = TokenReader(load_qwen_tokenizer(tmp_path))
    pieces = [
        reader.read(np.array(tokens[i : i + at_once], np.int32))
        for i in range(0, len(tokens), at_once)
    ]
    assert "".join(pieces) + reader.end() == TEXT
    assert "\ufffd" not in "".join(pieces)
