"""Tokenizers in both published formats, of the same tokens, without the published vocabulary."""

from __future__ import annotations

from pathlib import Path

from sentencepiece import SentencePieceNormalizer
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec
from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from cantata_models.pocket_tts.random_checkpoint.configs import PocketShape

SPECIAL = ("<unk>", "<s>", "</s>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
MERGES = (
    *(("▁", "t"), ("t", "h"), ("h", "e"), ("e", "r"), ("i", "n"), ("o", "n"), ("▁t", "he")),
    *(("▁", "a"), ("a", "n"), ("an", "d"), ("▁", "s"), ("o", "u")),
)
CHARACTERS = ("▁", *(chr(code) for code in range(0x21, 0x7F)), "\u2026", "é")


def write_tokenizer(folder: Path, shape: PocketShape) -> None:
    """Write tokenizer.json or tokenizer.model, whichever the configuration names."""
    if shape.config["flow_lm"]["lookup_table"]["tokenizer"] == "tokenizers":
        _write_json(folder / "tokenizer.json", shape.tokens)
    else:
        _write_model(folder / "tokenizer.model", shape.tokens)


def _list_tokens(count: int) -> list[str]:
    tokens = [*SPECIAL, *BYTES, *(left + right for left, right in MERGES), *CHARACTERS]
    return tokens + [f"<unused{index}>" for index in range(len(tokens), count)]


def _write_json(path: Path, count: int) -> None:
    vocabulary = {token: index for index, token in enumerate(_list_tokens(count))}
    model = BPE(vocabulary, list(MERGES), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.save(str(path))


def _write_model(path: Path, count: int) -> None:
    kinds, model = ModelProto.SentencePiece, ModelProto()
    for index, piece in enumerate(_list_tokens(count)):
        kind = kinds.NORMAL
        if piece in SPECIAL:
            kind = kinds.CONTROL if index else kinds.UNKNOWN
        elif piece in BYTES:
            kind = kinds.BYTE
        elif piece.startswith("<unused"):
            kind = kinds.UNUSED
        model.pieces.add(piece=piece, type=kind, score=-float(index))
    model.trainer_spec.model_type = TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = count
    normalizer = SentencePieceNormalizer(rule_name="identity")
    model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
    # Spaces in front of a text count.
    model.normalizer_spec.remove_extra_whitespaces = False
    path.write_bytes(model.SerializeToString(deterministic=True))
