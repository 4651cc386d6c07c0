"""The folder of Kokoro's ONNX form, as the package kokoro-onnx has it: the network in one file, and
the styles of all voices in another."""

from __future__ import annotations

import mmap
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cantata.contract.data.errors import ConfigError
from cantata_models.kokoro.voices import KokoroVoiceFile, check_style, sort_voices

if TYPE_CHECKING:
    import torch

NETWORKS = ("kokoro-v1.0.onnx", "kokoro-v1.0.fp16.onnx", "kokoro-v1.0.int8.onnx")
STYLES = "voices-v1.0.bin"
MAX_PHONES = 510
"""Of a sentence, without the padding."""
STYLE = 128
"""Numbers of half a style."""
_TENSOR_INT32, _TENSOR_INT64 = 6, 7
_WHOLE_SPEED = re.compile(
    rb"\n\x05speed\x12.\n.\x08[%c%c]" % (_TENSOR_INT32, _TENSOR_INT64), re.DOTALL
)
"""`ValueInfoProto { name, type { tensor_type { elem_type } } }` (onnx.proto)."""


def has_onnx(checkpoint: Path) -> bool:
    """Whether a folder is of this form; one that has torch weights too is not."""
    if any(checkpoint.glob("*.pth")):
        return False
    return any(checkpoint.glob("*.onnx")) or (checkpoint / STYLES).exists()


def find_network(checkpoint: Path) -> Path:
    """The network's file: one that is named as published, or else the only one.

    Raises:
        ConfigError: there is none, or more than one.
    """
    found = sorted(checkpoint.glob("*.onnx"))
    chosen = [path for path in found if path.name in NETWORKS] or found
    if len(chosen) != 1:
        names = ", ".join(path.name for path in chosen) or "no *.onnx"
        raise ConfigError(f"{checkpoint}: has {names}; it needs one network, such as {NETWORKS[0]}")
    return chosen[0]


def find_styles(checkpoint: Path) -> Path:
    """The file of styles.

    Raises:
        ConfigError: there is none.
    """
    file = checkpoint / STYLES
    if not file.exists():
        raise ConfigError(f"{checkpoint}: no {STYLES}, the voices' styles")
    return file


def takes_whole_speeds(network: Path) -> bool:
    """Whether a network's speed is a whole number, as in some exports. A file that is no network
    has none."""
    if network.stat().st_size == 0:
        return False
    with (
        network.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _WHOLE_SPEED.search(content) is not None


def list_voices(checkpoint: Path) -> tuple[KokoroVoiceFile, ...]:
    """Every style in the file, in the order of the torch form.

    Raises:
        ConfigError: there is no file of styles, it cannot be read, or it has none.
    """
    file = find_styles(checkpoint)
    with _open(file) as archive:
        voices = [KokoroVoiceFile(name, file) for name in archive.files]
    return sort_voices(voices)


def load_styles(checkpoint: Path) -> Mapping[str, torch.Tensor]:
    """Every voice's styles, [MAX_PHONES, 2 * STYLE] float32: one for each number of phones.

    Raises:
        ConfigError: as `list_voices`, or a style has another shape.
    """
    import torch

    file = find_styles(checkpoint)
    styles: dict[str, torch.Tensor] = {}
    with _open(file) as archive:
        for name in archive.files:
            where = f"{file}: {name}"
            try:
                read = torch.from_numpy(archive[name])
            except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as e:
                raise ConfigError(f"{where}: not a readable array of numbers: {e}") from e
            styles[name] = check_style(read, where, MAX_PHONES, 2 * STYLE)
    return styles


def _open(file: Path) -> np.lib.npyio.NpzFile:
    try:
        # Arrays of objects are pickles, which could run code; NumPy refuses them.
        found = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{file}: not a readable .npz of styles: {error}") from error
    if not isinstance(found, np.lib.npyio.NpzFile):
        raise ConfigError(f"{file}: one array, not an .npz of styles")
    if not found.files:
        raise ConfigError(f"{file}: no voices")
    return found
