"""Which voices a checkpoint has, mixtures of them, and what the voice's stage gets."""

from __future__ import annotations

import math
import pickle
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.request_building import OPENAI_VOICES
from cantata_models.kokoro.config import MAX_PHONES, STYLE, find_styles

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class KokoroInput:
    """One sentence, or a part of a very long one."""

    voices: tuple[str, ...]
    """Whose styles are mixed; usually one."""
    weights: tuple[float, ...]
    """Of each voice; their sum is 1."""
    phones: NDArray[np.int64]
    """[T] ids of the checkpoint's vocabulary, with the padding at both ends."""
    words: NDArray[np.int64]
    """[W, 2]: for each word of the request, its phones [start, end)."""
    speed: float
    """1 is the voice's own pace; 0.5 to 2."""
    seed: int
    """Of the noise in consonants and breath."""
    begins: bool
    """It is the first of its text: the silence before it is only a delay."""


FOLDER = "voices"
DEFAULT = "af_heart"
AMERICAN, BRITISH = "a", "b"
LANGUAGES: Mapping[str, str] = {
    AMERICAN: "American English",
    BRITISH: "British English",
    "e": "Spanish",
    "f": "French",
    "h": "Hindi",
    "i": "Italian",
    "j": "Japanese",
    "p": "Brazilian Portuguese",
    "z": "Mandarin Chinese",
}
"""By the first letter of a voice's name."""
GENDERS: Mapping[str, str] = {"f": "female", "m": "male"}
"""By the second."""
_PUBLISHED_NAME = re.compile(rf"([{''.join(LANGUAGES)}])([{''.join(GENDERS)}])_.+")
_MAX_WEIGHT = 1_000_000
"""Far from where the sum of weights is no number."""
_PART = re.compile(r"\s*([^\s()+]+)\s*(?:\(\s*([^()]*?)\s*\))?\s*")


@dataclass(frozen=True, slots=True)
class KokoroVoiceFile:
    name: str
    """By which clients ask for it."""
    file: Path

    @property
    def language(self) -> str:
        """A key of `LANGUAGES`; American for a name that is not formed as the published ones."""
        match = _PUBLISHED_NAME.fullmatch(self.name)
        return match[1] if match else AMERICAN

    @property
    def speaks_english(self) -> bool:
        """Whether texts can be read to it, not phones alone."""
        return self.language in (AMERICAN, BRITISH)

    @property
    def gender(self) -> str | None:
        """The gender as listeners hear it. None: the voice's name does not say."""
        match = _PUBLISHED_NAME.fullmatch(self.name)
        return GENDERS[match[2]] if match else None

    @property
    def description(self) -> str:
        """A description for people who choose a voice."""
        return ", ".join(filter(None, (LANGUAGES[self.language], self.gender)))


def list_voices(checkpoint: Path) -> tuple[KokoroVoiceFile, ...]:
    """Every `voices/*.pt`: the default one first, then English ones, each by name.

    Raises:
        ConfigError: there is none.
    """
    voices = [KokoroVoiceFile(path.stem, path) for path in (checkpoint / FOLDER).glob("*.pt")]
    if not voices:
        raise ConfigError(
            f"{checkpoint / FOLDER}: no voices; it must have files such as {DEFAULT}.pt"
        )
    return sort_voices(voices)


def sort_voices(voices: Iterable[KokoroVoiceFile]) -> tuple[KokoroVoiceFile, ...]:
    """The default one first, then English ones, each by name."""
    return tuple(
        sorted(voices, key=lambda one: (one.name != DEFAULT, not one.speaks_english, one.name))
    )


def name_aliases(voices: Sequence[KokoroVoiceFile]) -> Mapping[str, tuple[str, ...]]:
    """OpenAI's names for each voice: a voice that is called so gets it, the rest go to the English
    voices in turn."""
    english = [voice.name for voice in voices if voice.speaks_english] or [voices[0].name]
    aliases: dict[str, tuple[str, ...]] = {voice.name: () for voice in voices}
    taken = {voice.name for voice in voices}
    for index, alias in enumerate(name for name in OPENAI_VOICES if name not in taken):
        called_so = [name for name in english if name.partition("_")[2] == alias]
        target = called_so[0] if called_so else english[index % len(english)]
        aliases[target] += (alias,)
    return aliases


def parse_blend(written: str, names: Collection[str]) -> Mapping[str, float]:
    """The share of each voice in a mixture such as `af_bella(2)+af_sky(1)`; together 1.

    Args:
        written: by a client.
        names: of the voices.

    Raises:
        InvalidRequest: it is not formed so, a voice is unknown, or a weight is not above 0.
    """
    shares: dict[str, float] = {}
    for part in written.split("+"):
        match = _PART.fullmatch(part)
        if match is None:
            raise InvalidRequest(
                f"voice: {part.strip()!r} is no voice; write such as af_bella+af_sky or "
                "af_bella(2)+af_sky(1)",
                "voice",
            )
        name, weight = match[1], _read_weight(match[1], match[2])
        if name not in names:
            raise InvalidRequest(
                f"voice: there is no voice {name!r}; voices: {', '.join(names)}", "voice"
            )
        shares[name] = shares.get(name, 0.0) + weight
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()}


def _read_weight(name: str, written: str | None) -> float:
    try:
        weight = 1.0 if written is None else float(written)
    except ValueError:
        weight = math.nan
    if not 0 < weight <= _MAX_WEIGHT:
        raise InvalidRequest(
            f"voice: the weight of {name} must be a number above 0 and at most {_MAX_WEIGHT}, "
            f"not {written!r}",
            "voice",
        )
    return weight


def load_styles(
    voices: Sequence[KokoroVoiceFile], max_phones: int, style: int
) -> Mapping[str, torch.Tensor]:
    """Every voice's styles, [max_phones, 2 * style] float32: one for each number of phones.

    Args:
        voices: of the checkpoint.
        max_phones: most phones of a sentence, without the padding.
        style: numbers of half a style.

    Raises:
        ConfigError: a file cannot be read, or has another shape.
    """
    return {voice.name: _load_style(voice.file, max_phones, 2 * style) for voice in voices}


def _load_style(path: Path, rows: int, columns: int) -> torch.Tensor:
    import torch

    try:
        # WHY weights_only: any other pickle can run code.
        styles = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise ConfigError(f"{path}: not a readable pickle of a tensor: {error}") from error
    return check_style(styles, str(path), rows, columns)


def check_style(styles: object, where: str, rows: int, columns: int) -> torch.Tensor:
    """One voice's styles, [rows, columns] float32, as they were read.

    Args:
        styles: should be a tensor, [at least rows, 1, columns].
        where: it was read from.
        rows, columns: number of phones at most, and numbers of a style.

    Raises:
        ConfigError: it is something else, or has numbers that are not finite.
    """
    import torch

    shape = list(styles.shape) if isinstance(styles, torch.Tensor) else type(styles).__name__
    if (
        not isinstance(styles, torch.Tensor)
        or not isinstance(shape, list)
        or len(shape) != 3
        or shape[0] < rows
        or shape[1:] != [1, columns]
    ):
        raise ConfigError(
            f"{where}: a voice must be a tensor of [{rows}, 1, {columns}], a style for each number "
            f"of phones; this is {shape}"
        )
    made: torch.Tensor = styles[:rows, 0].float()
    if not made.isfinite().all():
        raise ConfigError(f"{where}: has numbers that are not finite")
    return made


def list_exported_voices(checkpoint: Path) -> tuple[KokoroVoiceFile, ...]:
    """Every style in the file, in the order of the torch form.

    Raises:
        ConfigError: there is no file of styles, it cannot be read, or it has none.
    """
    file = find_styles(checkpoint)
    with _open(file) as archive:
        voices = [KokoroVoiceFile(name, file) for name in archive.files]
    return sort_voices(voices)


def load_exported_styles(checkpoint: Path) -> Mapping[str, torch.Tensor]:
    """Every voice's styles, [MAX_PHONES, 2 * STYLE] float32: one for each number of phones.

    Raises:
        ConfigError: as `list_exported_voices`, or a style has another shape.
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
