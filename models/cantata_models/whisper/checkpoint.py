"""Whisper's checkpoints: CTranslate2's folders as they are, Hugging Face's converted once.

Text, languages and tasks are tokens of one vocabulary (arXiv:2212.04356, section 2.3).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from platformdirs import user_cache_path
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_layers.token_text import get_token_bytes

_START = "<|startoftranscript|>"
_END = "<|endoftext|>"
_TASKS = ("<|translate|>", "<|transcribe|>")
_PREVIOUS = "<|startofprev|>"
_PLAIN = "<|notimestamps|>"
_MAX_PROMPT_TOKENS = 223
"""Half of the decoder's positions, less the mark before the prompt."""
_TEXT_ALONE = 51_864
"""Tokens of the vocabulary of models that know English alone; others have at least one more."""
_TAGS = {"jw": "jv"}
"""Whisper's codes of languages that differ from BCP 47's."""
_OTHER_TAGS = {"nb": "no", "fil": "tl", "cmn": "zh"}
"""More tags of languages that Whisper knows by another one."""


class Vocabulary:
    """The vocabulary of one checkpoint.

    Args:
        folder: has `tokenizer.json`.
        is_multilingual: whether the model knows more than English.

    Raises:
        ConfigError: the file is missing, or is no tokenizer of this model.
    """

    def __init__(self, folder: Path, *, is_multilingual: bool) -> None:
        path = folder / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f"{path}: cannot be read as a tokenizer ({error})") from error
        for token in (_START, _END, *_TASKS, _PREVIOUS, _PLAIN):
            if self._tokenizer.token_to_id(token) is None:
                raise ConfigError(f"{path}: no token {token}")
        self.is_multilingual = is_multilingual
        self.end = self._id(_END)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Whisper's codes of the languages, English first."""
        if not self.is_multilingual:
            return ("en",)
        first, last = self._id(_START) + 1, self._id(_TASKS[0])
        tokens = (self._tokenizer.id_to_token(number) or "" for number in range(first, last))
        return tuple(token.strip("<|>") for token in tokens)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        return tuple(_TAGS.get(code, code) for code in self.codes)

    def find_code(self, language: str) -> str | None:
        """Whisper's code of a BCP 47 tag, such as `pt` for `pt-BR`; None if it has none."""
        primary = language.lower().replace("_", "-").partition("-")[0]
        known = dict(zip(self.languages, self.codes, strict=True))
        if primary in self.codes:
            return primary
        return known.get(primary) or known.get(_OTHER_TAGS.get(primary, ""))

    def tag(self, code: str) -> str:
        return _TAGS.get(code, code)

    def build_prompt(self, prompt: str, code: str, *, translate: bool) -> list[int]:
        """The tokens before a window's text, whose last ones are `build_start`'s. `prompt`: text
        that came before; of a long one, the end counts."""
        start = self.build_start(code, translate=translate)
        if not prompt.strip():
            return start
        earlier = self.encode(f" {prompt.strip()}")[-_MAX_PROMPT_TOKENS:]
        return [self._id(_PREVIOUS), *earlier, *start]

    def build_start(self, code: str, *, translate: bool) -> list[int]:
        """The marks of language and task before a window's text."""
        if not self.is_multilingual:
            return [self._id(_START), self._id(_PLAIN)]
        task = _TASKS[0] if translate else _TASKS[1]
        return [self._id(mark) for mark in (_START, f"<|{code}|>", task, _PLAIN)]

    def encode(self, text: str) -> list[int]:
        """Text as tokens; marks spelled in it are none."""
        encoded: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [number for number in encoded if number < self.end]

    def decode(self, tokens: list[int]) -> str:
        """Tokens as text, without marks."""
        text: str = self._tokenizer.decode([token for token in tokens if token < self.end])
        return text

    def to_bytes(self, token: int) -> bytes:
        """A token of text as UTF-8, of which it may be a part of a character."""
        return get_token_bytes(self._tokenizer, token)

    def _id(self, token: str) -> int:
        number: int | None = self._tokenizer.token_to_id(token)
        assert number is not None
        return number


def knows_more_than_english(vocabulary_size: int) -> bool:
    """Whether a model with so many tokens is multilingual."""
    return vocabulary_size > _TEXT_ALONE


_BINARY = "model.bin"
_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")


@dataclass(frozen=True, slots=True)
class WhisperConfig:
    """What a folder says of its model."""

    is_multilingual: bool
    mel_bins: int


def read_config(folder: Path) -> WhisperConfig:
    """Read the configuration of a checkpoint in either form. Raises ConfigError: a file is missing
    or damaged."""
    if not is_converted(folder):
        config = read_json(folder / "config.json")
        size = config.size("vocab_size")
        return WhisperConfig(knows_more_than_english(size), config.size("num_mel_bins", 80))
    for name in _VOCABULARIES:
        if (path := folder / name).is_file():
            text = path.read_text(encoding="utf-8")
            size = len(json.loads(text)) if path.suffix == ".json" else len(text.splitlines())
            return WhisperConfig(knows_more_than_english(size), _read_mel_bins(folder))
    raise ConfigError(f"{folder}: none of {', '.join(_VOCABULARIES)}")


def is_converted(folder: Path) -> bool:
    """Whether the folder has CTranslate2's form."""
    return (folder / _BINARY).is_file()


def convert(folder: Path) -> Path:
    """The folder in CTranslate2's form: itself, or a copy in the user's cache that was made once.
    Raises ConfigError: the checkpoint cannot be converted."""
    if is_converted(folder):
        return folder
    target = user_cache_path("cantata") / "ctranslate2" / _identify(folder)
    if is_converted(target):
        return target
    from ctranslate2.converters import TransformersConverter

    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        try:
            TransformersConverter(str(folder)).convert(str(fresh), force=True)
        except Exception as error:  # transformers' errors have no common type
            raise ConfigError(f"{folder}: cannot be converted ({error})") from error
        try:
            os.replace(fresh, target)
        except OSError:
            if not is_converted(target):  # another process was faster
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _read_mel_bins(folder: Path) -> int:
    """Large models since version 3 have 128, and say so in a file that others lack."""
    path = folder / "preprocessor_config.json"
    return read_json(path).size("feature_size", 80) if path.is_file() else 80


def _identify(folder: Path) -> str:
    """A name that changes with the files of weights."""
    files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
    parts = [f"{file.name}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files]
    digest = hashlib.sha256("\n".join([str(folder.resolve()), *parts]).encode())
    return digest.hexdigest()[:32]
