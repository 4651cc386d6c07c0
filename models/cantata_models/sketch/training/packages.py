"""The two Debian packages that the pictures and their names come from."""

from __future__ import annotations

import logging
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

FONT = Path("usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
"""Of fonts-noto-color-emoji; SIL Open Font License 1.1."""
ANNOTATIONS = Path("usr/share/unicode/cldr/common/annotations/en.xml")
"""Of unicode-cldr-core; Unicode licence."""
PACKAGES = {"fonts-noto-color-emoji": FONT, "unicode-cldr-core": ANNOTATIONS}


class SourceMissing(RuntimeError):
    """A Debian package that the training needs is neither installed nor within reach."""


@dataclass(frozen=True)
class Sources:
    """The files that pictures and captions are made from."""

    font: Path
    annotations: Path


def find_sources(folder: Path) -> Sources:
    """Finds the files where Debian installs them, or fetches the packages into `folder`.

    Raises:
        SourceMissing: a package is not installed and apt-get could not fetch it.
    """
    found = {name: _find(name, file, folder) for name, file in PACKAGES.items()}
    return Sources(found["fonts-noto-color-emoji"], found["unicode-cldr-core"])


def _find(package: str, file: Path, folder: Path) -> Path:
    for root in (Path("/"), folder / "root"):
        if (root / file).exists():
            return root / file
    _fetch(package, folder)
    return folder / "root" / file


def _fetch(package: str, folder: Path) -> None:
    """Downloads a package as any user and unpacks it, without installing it."""
    tools = [shutil.which(tool) for tool in ("apt-get", "dpkg-deb")]
    advice = f"install the Debian package {package} (apt-get install {package}) and run this again"
    if None in tools:
        raise SourceMissing(f"{package} is not installed and apt-get is not here: {advice}")
    folder.mkdir(parents=True, exist_ok=True)
    logger.info("fetching %s", package)
    try:
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
        archive = max(folder.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
        subprocess.run(["dpkg-deb", "-x", str(archive), str(folder / "root")], check=True)
    except (subprocess.CalledProcessError, ValueError) as error:
        raise SourceMissing(f"apt-get could not fetch {package}: {advice}") from error
