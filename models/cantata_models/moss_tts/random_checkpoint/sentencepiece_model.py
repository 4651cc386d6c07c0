"""A SentencePiece model in Nano's form: the published special ids, bytes, and few merges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sentencepiece import SentencePieceNormalizer
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

SPACE = "\u2581"
"""Stands for a space in a piece."""
CONTROL = ("<s>", "</s>", "<pad>")
USER_DEFINED = (
    "<|im_start|>",
    "<|im_end|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<|vision_pad|>",
    "<|video_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|audio_pad|>",
    "<user_inst>",
    "</user_inst>",
)
"""From id 4 on, as published."""
MERGES = (
    *("▁t", "he", "in", "▁the", "er", "on", "▁us", "▁user", "ss", "▁a", "▁ass", "is", "ist"),
    *("▁assist", "an", "ant", "ou", "▁N", "▁None", "one", "re", "▁-", "世界"),
)
"""Pieces of several characters; each joins two that are pieces themselves."""
CHARACTERS = (
    SPACE,
    *(chr(code) for code in range(0x21, 0x7F)),
    *"你好世界今天气真。，！？",  # noqa: RUF001
)
VOCABULARY = 1 + len(CONTROL) + len(USER_DEFINED) + 256 + len(MERGES) + len(CHARACTERS)
"""Number of pieces."""


def write_sentencepiece(path: Path, vocabulary: int = VOCABULARY) -> None:
    """Write the model.

    Args:
        path: of the file.
        vocabulary: number of pieces; unused ones follow those that there are.
    """
    model = ModelProto()
    for piece, kind, score in _pieces():
        model.pieces.add(piece=piece, type=kind, score=score)
    for index in range(len(model.pieces), vocabulary):
        kind = ModelProto.SentencePiece.UNUSED
        model.pieces.add(piece=f"<unused{index}>", type=kind, score=0.0)
    model.trainer_spec.model_type = TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = vocabulary
    model.trainer_spec.pad_id = 3
    model.trainer_spec.user_defined_symbols.extend(USER_DEFINED)
    normalizer = SentencePieceNormalizer(rule_name="nmt_nfkc")
    model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
    path.write_bytes(model.SerializeToString(deterministic=True))


def _pieces() -> Iterator[tuple[str, int, float]]:
    """Yield each piece with its type and score; a merge with a higher score comes first."""
    kinds = ModelProto.SentencePiece
    yield "<unk>", kinds.UNKNOWN, 0.0
    for piece in CONTROL:
        yield piece, kinds.CONTROL, 0.0
    for piece in USER_DEFINED:
        yield piece, kinds.USER_DEFINED, 0.0
    for byte in range(256):
        yield f"<0x{byte:02X}>", kinds.BYTE, 0.0
    for rank, piece in enumerate((*MERGES, *CHARACTERS)):
        yield piece, kinds.NORMAL, -float(rank)
