"""Request options beyond text, voice and seed, validated against one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.request_options import TopK, parse_fields
from cantata_models.qwen3_tts.config import ModelKind, Qwen3TtsConfig

AUTO = "auto"
TASK_TYPES: Mapping[ModelKind, str] = {
    ModelKind.CUSTOM_VOICE: "CustomVoice",
    ModelKind.VOICE_DESIGN: "VoiceDesign",
    ModelKind.BASE: "Base",
}
LANGUAGE_TAGS: Mapping[str, str] = {
    "chinese": "zh",
    "english": "en",
    "french": "fr",
    "german": "de",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
}
"""Language names in checkpoints -> BCP 47 tags."""


class Qwen3TtsOptions(BaseModel):
    """Request fields specific to this model. None means the checkpoint's default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    task_type: Literal["CustomVoice", "VoiceDesign", "Base"] | None = None
    """The checkpoint's task; other tasks are rejected."""
    language: str | None = None
    """A name such as "German", its BCP 47 tag, or "Auto"."""
    x_vector_only_mode: bool = False
    """Follow a recording's speaker only by its vector, without continuing the recording."""
    non_streaming_mode: bool | None = None
    """Whether all text comes before the first frame; otherwise one token is added per frame."""
    top_k: TopK | None = None
    """0 means all."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Of the likeliest codes, so many as have this probability together."""
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    """Of codes that the utterance has used."""
    max_new_tokens: Annotated[int, Field(ge=2)] | None = None
    """One more than the maximum number of 80 ms frames in the utterance."""


def parse_options(values: Mapping[str, Any], config: Qwen3TtsConfig) -> Qwen3TtsOptions:
    """Validate a request's model-specific fields.

    Raises:
        InvalidRequest: names the field and lists the valid values.
    """
    options = parse_fields(values, Qwen3TtsOptions)
    own = TASK_TYPES[config.kind]
    if options.task_type not in (None, own):
        raise InvalidRequest(
            f"task_type {options.task_type!r} needs another checkpoint; valid: {own!r}", "task_type"
        )
    return options


def language_code(name: str | None, voice: str | None, config: Qwen3TtsConfig) -> int | None:
    """Return the code of a request's language; None lets the model detect it.

    A voice with a dialect uses it instead of Chinese, and when the request names no language.

    Raises:
        InvalidRequest: the checkpoint does not support the language; lists those that it does.
    """
    wanted = (name or AUTO).lower()
    by_tag = {tag: language for language, tag in LANGUAGE_TAGS.items()}
    wanted = by_tag.get(wanted, wanted)
    if wanted != AUTO and wanted not in config.spoken_languages:
        valid = ", ".join(["Auto", *(language.title() for language in config.spoken_languages)])
        raise InvalidRequest(f"language {name!r} is not spoken; valid: {valid}", "language")
    dialect = config.dialects.get(voice or "")
    if dialect is not None and wanted in (AUTO, "chinese"):
        return config.languages[dialect]
    return None if wanted == AUTO else config.languages[wanted]
