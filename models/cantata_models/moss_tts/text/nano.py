"""The tokenizer of MOSS-TTS-Nano."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from cantata.contract.data.errors import ConfigError

SENTENCEPIECE_FILE = "tokenizer.model"


class NanoTokenizer:
    """Implements `prompt.TextTokenizer`: SentencePiece.

    Raises:
        ConfigError: (on construction) the file is missing or damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        model = _read_model(checkpoint / SENTENCEPIECE_FILE)
        self._template = SentencePieceProcessor(model_proto=model.SerializeToString())
        _demote_special_pieces(model)
        self._plain = SentencePieceProcessor(model_proto=model.SerializeToString())

    def template(self, text: str) -> tuple[int, ...]:
        """As `MossTokenizer.template`; the template's own tags are single tokens."""
        return tuple(self._template.encode(text))

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._plain.encode(text))


def _read_model(path: Path) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise ConfigError(f"{path}: not a readable SentencePiece model: {error}") from error
    if not model.pieces:
        raise ConfigError(f"{path}: not a readable SentencePiece model: it has no pieces")
    return model


def _demote_special_pieces(model: ModelProto) -> None:
    """Make pieces that match their own spelling such that no text produces them."""
    kinds = ModelProto.SentencePiece
    for piece in model.pieces:
        if piece.type == kinds.USER_DEFINED:
            piece.type = kinds.CONTROL
