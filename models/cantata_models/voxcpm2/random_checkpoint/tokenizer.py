"""A tokenizer in the published format, without the published vocabulary."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, normalizers, processors
from tokenizers.models import BPE

from cantata_layers.random_files import write_json

SPECIAL = ("<unk>", "<s>", "</s>")
FOR_SOUND = ("<|audio_start|>", "<|audio_end|>", "<|audio_prompt_start|>", "<|audio_prompt_end|>")
FIRST_FOR_SOUND = 101
PRINTABLE = [chr(code) for code in range(0x21, 0x7F)]
CHINESE = "你好世界早上"
MERGES = (
    *(("▁", "t"), ("t", "h"), ("h", "e"), ("e", "r"), ("i", "n"), ("o", "n"), ("▁t", "he")),
    *(("你", "好"), ("世", "界"), ("▁", "你好"), ("▁", "早")),
)
"""Some words; Chinese ones are to be split again."""


def write_tokenizer(folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json."""
    model = BPE(
        _vocabulary(), list(MERGES), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = [*SPECIAL, *FOR_SOUND]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    # A beginning that the model must not get.
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"unk_token": SPECIAL[0], "bos_token": SPECIAL[1], "eos_token": SPECIAL[2]}
    write_json(folder / "special_tokens_map.json", named)
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "clean_up_tokenization_spaces": False,
            "legacy": True,
            "model_max_length": 10**9,
            "tokenizer_class": "LlamaTokenizer",
            **named,
        },
    )


def _vocabulary() -> dict[str, int]:
    tokens = [*SPECIAL, "▁", *PRINTABLE]
    tokens += [f"<|unused_{index}|>" for index in range(len(tokens), FIRST_FOR_SOUND)]
    tokens += [*FOR_SOUND, *CHINESE, *(left + right for left, right in MERGES)]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    return {token: index for index, token in enumerate(tokens)}
