"""The published text tokenizers of both models.

A caller's text never becomes a special token, however it is spelled: its characters are encoded one
by one instead. WHY not refused: a text may quote markup and is then still read aloud, and every
spelling would have to be found, among them those that become special only when the tokenizer
normalizes them (full-width brackets).
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer


class LocalTokenizer:
    """Implements `prompt.MossTokenizer`: Qwen's byte-level BPE.

    Raises:
        ConfigError: (on construction) a file is missing or damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._tokenizer = load_qwen_tokenizer(checkpoint)

    def template(self, text: str) -> tuple[int, ...]:
        """As `encode`: the template spells no special token."""
        return self.encode(text)

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


SENTENCEPIECE_FILE = "tokenizer.model"


class NanoTokenizer:
    """Implements `prompt.MossTokenizer`: SentencePiece.

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
