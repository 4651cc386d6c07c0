"""Values from inside an ONNX model as outputs of it, without the package `onnx`.

Two facts about protocol buffers make this possible: messages that follow each other are merged, and
a text is written as its field's tag, its length and its letters (`onnx.proto`).
"""

from __future__ import annotations

from collections.abc import Iterator

_MAX_VARINT = 127
"""Letters of a name whose length is one byte."""


def add_output(model: bytes, name: bytes) -> bytes:
    """An ONNX model that also returns a value from inside, of whatever type.

    What is put behind the model is `ModelProto { graph { output { name } } }`.

    Args:
        name: of the value, at most 123 letters.
    """
    return model + _encode_field(7, _encode_field(12, _encode_field(1, name)))


def find_values(model: bytes, ending: bytes) -> Iterator[bytes]:
    """The names of what the model's nodes make, in their order, if they end so."""
    end = model.find(ending)
    while end >= 0:
        end += len(ending)
        for length in range(len(ending), _MAX_VARINT + 1):
            begin = end - length
            if begin >= 2 and model[begin - 2 : begin] == _encode_head(
                2, length
            ):  # NodeProto.output
                yield model[begin:end]
                break
        end = model.find(ending, end)


def _encode_field(number: int, content: bytes) -> bytes:
    """A field of bytes, at most `_MAX_VARINT`."""
    return _encode_head(number, len(content)) + content


def _encode_head(number: int, length: int) -> bytes:
    """What is in front of a field of bytes."""
    return bytes([number << 3 | 2, length])
