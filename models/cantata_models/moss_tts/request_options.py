"""What requests may set beyond text, voice and seed: fields, languages, sampling."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import SamplingOptions, SpeechRequest
from cantata_layers.request_options import TopK, recording_mode
from cantata_models.moss_tts.config import MossDefaults
from cantata_models.moss_tts.prompt import MossMode

TopP = Annotated[float, Field(gt=0, le=1)]
MAX_PART_TOKENS = 75
"""Text tokens of a part; a longer text is split if it imitates a speaker."""


class MossOptions(BaseModel):
    """Request fields that both models have. None means the default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )
    not_in_continuations: ClassVar[tuple[str, ...]] = ()
    """Fields that a continuation cannot have."""

    mode: Literal["voice_clone", "continuation"] | None = None
    """What a recording is for. By default, one with a transcript is continued, any other
    imitated."""
    top_k: TopK | None = None
    """Of every codebook; 0 means all."""
    top_p: TopP | None = None
    """Of every codebook."""
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    """Of every codebook."""
    text_temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Of the choice between going on and stopping; 0 is greedy."""
    text_top_k: TopK | None = None
    """Of the choice between going on and stopping; 0 means all."""
    text_top_p: TopP | None = None
    """Of the choice between going on and stopping."""
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of 80 ms frames."""


class LocalOptions(MossOptions):
    """Request fields of MOSS-TTS-Local."""

    not_in_continuations = ("tokens",)

    language: str | None = None
    """A name such as "German", its BCP 47 tag, or "Auto"."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Wanted number of 80 ms frames."""
    quality: str | None = None
    """The prompt's field "Quality", in words."""
    sound_event: str | None = None
    """The prompt's field "Sound Event", in words."""
    ambient_sound: str | None = None
    """The prompt's field "Ambient Sound", in words."""


class NanoOptions(MossOptions):
    """Request fields of MOSS-TTS-Nano."""

    voice_clone_max_text_tokens: Annotated[int, Field(ge=0)] = MAX_PART_TOKENS
    """Maximum tokens of a part of a text that imitates a speaker; 0 keeps every text whole."""


def speaking_mode(options: MossOptions, *, recording: bool, transcript: bool) -> MossMode:
    """Return what a request's recording is for.

    Args:
        transcript: whether the recording's words are known.

    Raises:
        InvalidRequest: the mode needs a recording or a transcript, or excludes another option.
    """
    asked = recording_mode(options.mode, recording=recording, transcript=transcript)
    mode = MossMode(asked or MossMode.PLAIN)
    if mode is not MossMode.CONTINUATION:
        return mode
    for name in options.not_in_continuations:
        if getattr(options, name) is not None:
            raise InvalidRequest(
                f"{name} is not for a continuation; leave it out or set mode to "
                f"{MossMode.CLONE.value!r}",
                name,
            )
    return mode


AUTO = "auto"
LANGUAGES: Mapping[str, str] = {
    "zh": "Chinese",
    "yue": "Cantonese",
    "en": "English",
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "nl": "Dutch",
    "fi": "Finnish",
    "fr": "French",
    "de": "German",
    "el": "Greek",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "mk": "Macedonian",
    "ms": "Malay",
    "fa": "Persian (Farsi)",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "es": "Spanish",
    "sw": "Swahili",
    "sv": "Swedish",
    "tl": "Tagalog",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
}
"""Those that the published program offers."""


def language_name(wanted: str | None) -> str | None:
    """Return the name of a language in the prompt; None lets the model detect it.

    Args:
        wanted: a name, a tag, or "Auto", in any case.

    Raises:
        InvalidRequest: there is no such language; lists those that there are.
    """
    if wanted is None or wanted.strip().lower() == AUTO:
        return None
    key = wanted.strip().lower()
    for tag, name in LANGUAGES.items():
        if key in (tag, name.lower()):
            return name
    valid = ", ".join(["Auto", *LANGUAGES.values()])
    raise InvalidRequest(f"language {wanted!r} is not spoken; valid: {valid}", "language")


T = TypeVar("T")


def get_sampling(
    request: SpeechRequest, options: MossOptions, defaults: MossDefaults
) -> SamplingOptions:
    """Return the settings of all three levels.

    Temperature 0 makes the choice to stop greedy too, unless it has a temperature of its own.
    Without a seed each call draws one.
    """
    audio, stop = defaults.audio, defaults.stop
    temperature = _or_default(request.temperature, audio.temperature)
    penalty = _or_default(options.repetition_penalty, defaults.repetition_penalty)
    return SamplingOptions(
        seed=secrets.randbits(63) if request.seed is None else request.seed,
        temperature=temperature,
        top_k=_or_default(options.top_k, audio.top_k),
        top_p=_or_default(options.top_p, audio.top_p),
        repetition_penalty=penalty,
        residual_repetition_penalty=penalty,
        stop_temperature=_or_default(
            options.text_temperature, stop.temperature if temperature else 0.0
        ),
        stop_top_k=_or_default(options.text_top_k, stop.top_k),
        stop_top_p=_or_default(options.text_top_p, stop.top_p),
    )


def _or_default(value: T | None, default: T) -> T:
    return default if value is None else value
