"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    ReferenceAudio,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_models.qwen3_tts.config import ModelKind, Qwen3TtsConfig, load_config
from cantata_models.qwen3_tts.prompt import SpokenText
from cantata_models.qwen3_tts.request_options import (
    LANGUAGE_TAGS,
    OPTION_NAMES,
    RequestOptions,
    language_code,
    parse_options,
)
from cantata_models.qwen3_tts.text import ArrivingText, TextTokenizer

STAGE = "talker"
SAMPLE_RATE = 24_000
"""Sample rate that the encoders expect, in Hz."""
SAMPLES_PER_FRAME = 1920
WARM_UP_FRAMES = 12
OPENAI_VOICES = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)
"""OpenAI's thirteen voice names, for clients that accept no others."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """The talker stage's input. The payload holds the same values as plain data."""

    spoken: SpokenText
    language: int | None
    """The language's code; None lets the model detect it."""
    speaker: int | None
    """The voice's code."""
    reference: NDArray[np.float32] | None
    """[N] at 24 kHz: recording of the speaker to follow."""
    continue_reference: bool
    """Continue the reference recording instead of only using its voice."""
    streamed: bool
    """Add the text to the frames, one token per frame."""
    max_frames: int | None
    """None for the checkpoint's default."""
    sampling: dict[str, Any]
    """Arguments of `SamplingOptions`."""


class Qwen3RequestBuilder:
    """Implements `contract.model.plugin.OpenRequestBuilder` for one checkpoint."""

    def __init__(self, config: Qwen3TtsConfig, tokenizer: TextTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._voices = _voices(config)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The checkpoint's voices, with OpenAI's names as aliases."""
        return self._voices

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities, which depend on the checkpoint's task."""
        config = self._config
        tags = (LANGUAGE_TAGS.get(name) for name in config.spoken_languages)
        return Capabilities(
            instructions=config.follows_instructions,
            references=config.kind is ModelKind.BASE,
            languages=tuple(tag for tag in tags if tag is not None),
            open_text=True,
            options=OPTION_NAMES,
        )

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for a second of speech. A Base checkpoint gets noise as its recording."""
        options: dict[str, Any] = {"max_new_tokens": WARM_UP_FRAMES + 1}
        reference = None
        if self._config.kind is ModelKind.BASE:
            noise = np.random.default_rng(0).normal(0, 0.1, (SAMPLE_RATE, 1)).astype(np.float32)
            reference = ReferenceAudio(noise, SAMPLE_RATE, "Hello.")
        return SpeechRequest("Hello.", self._voices[0].id, reference=reference, options=options)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for the whole text.

        Raises:
            InvalidRequest: there is no text to speak, or this checkpoint does not support a field.
        """
        options = parse_options(request.options, self._config)
        body = self._tokenizer.encode(self._tokenizer.normalize(request.text).strip())
        if not any(character.isalnum() for character in request.text):
            raise InvalidRequest("the text holds nothing that can be spoken", "input")
        streamed = not self._text_first(options)
        inputs = self._inputs(request, options, body, complete=True, streamed=streamed)
        return (_pipeline_request(f"{request_id}-0", inputs),)

    def open(self, request_id: str, request: SpeechRequest) -> OpenTalkerText:
        """Open a request for incremental text; `request.text` is its start and may be empty.

        Raises:
            InvalidRequest: this checkpoint does not support a field.
        """
        options = parse_options(request.options, self._config)
        if options.non_streaming_mode:
            raise InvalidRequest(
                "non_streaming_mode needs the whole text before any sound; text that arrives in "
                "pieces needs false",
                "non_streaming_mode",
            )
        inputs = self._inputs(request, options, (), complete=False, streamed=True)
        feed = OpenTalkerText(f"{request_id}-0", inputs, self._tokenizer)
        feed.push(request.text)
        return feed

    def _text_first(self, options: RequestOptions) -> bool:
        if options.non_streaming_mode is None:
            return self._config.kind is not ModelKind.BASE
        return options.non_streaming_mode

    def _inputs(
        self,
        request: SpeechRequest,
        options: RequestOptions,
        body: tuple[int, ...],
        *,
        complete: bool,
        streamed: bool,
    ) -> TalkerInput:
        config = self._config
        own_voice = request.voice if config.kind is ModelKind.CUSTOM_VOICE else None
        reference = self._reference(request, options)
        transcript = request.reference.transcript if request.reference else None
        continues = reference is not None and not options.x_vector_only_mode
        instruction = request.instructions if config.follows_instructions else None
        spoken = SpokenText(
            role=self._tokenizer.role,
            body=body,
            complete=complete,
            instruction=self._tokenizer.instruction(instruction or ""),
            reference=self._tokenizer.encode((transcript or "").strip()) if continues else (),
        )
        return TalkerInput(
            spoken=spoken,
            language=language_code(options.language, own_voice, config),
            speaker=config.speakers[own_voice] if own_voice is not None else None,
            reference=reference,
            continue_reference=continues,
            streamed=streamed,
            max_frames=options.max_new_tokens and options.max_new_tokens - 1,
            sampling=self._sampling(request, options),
        )

    def _reference(
        self, request: SpeechRequest, options: RequestOptions
    ) -> NDArray[np.float32] | None:
        """Return the recording to follow, at the encoders' sample rate."""
        if self._config.kind is not ModelKind.BASE:
            return None
        reference = request.reference
        if reference is None:
            raise InvalidRequest(
                "this checkpoint has no voices of its own; send ref_audio, a recording of the "
                "speaker to follow, or the name of an uploaded voice",
                "ref_audio",
            )
        if not options.x_vector_only_mode and not (reference.transcript or "").strip():
            raise InvalidRequest(
                "ref_text is missing, the recording's transcript; or set x_vector_only_mode, "
                "which uses only the speaker",
                "ref_text",
            )
        samples = reference.mono
        if reference.sample_rate != SAMPLE_RATE:
            samples = soxr.resample(samples, reference.sample_rate, SAMPLE_RATE)
        return np.ascontiguousarray(samples, np.float32)

    def _sampling(self, request: SpeechRequest, options: RequestOptions) -> dict[str, Any]:
        """Return sampling settings: the request's for both levels, else each level's default."""
        generation = self._config.generation
        first, residual = generation.first, generation.residual
        own_penalty = options.repetition_penalty
        return {
            "seed": secrets.randbits(63) if request.seed is None else request.seed,
            "temperature": _or(request.temperature, first.temperature),
            "top_k": _or(options.top_k, first.top_k),
            "top_p": _or(options.top_p, first.top_p),
            "repetition_penalty": _or(own_penalty, generation.repetition_penalty),
            "residual_temperature": _or(request.temperature, residual.temperature),
            "residual_top_k": _or(options.top_k, residual.top_k),
            "residual_top_p": _or(options.top_p, residual.top_p),
        }


class OpenTalkerText:
    """Implements `contract.model.plugin.TextFeed`: tokenizes text as it arrives."""

    def __init__(self, request_id: str, inputs: TalkerInput, tokenizer: TextTokenizer) -> None:
        self._request_id = request_id
        self._inputs = inputs
        self._text = ArrivingText(tokenizer)
        self._tokens: list[int] = []
        self._closed = False

    def push(self, text: str) -> None:
        """Add text."""
        self._tokens.extend(self._text.push(text))

    def close(self) -> None:
        """Mark the text as complete."""
        self._tokens.extend(self._text.close())
        self._closed = True

    def start(self) -> PipelineRequest | None:
        """Return the request once its prompt can be filled, None before that.

        Raises:
            InvalidRequest: the text is complete but empty.
        """
        if self._closed and not self._tokens:
            raise InvalidRequest("the text holds nothing that can be spoken", "input")
        if not self._closed and len(self._tokens) < self._needed():
            return None
        spoken = self._inputs.spoken
        begun = replace(spoken, body=self._take(), complete=self._closed)
        return _pipeline_request(self._request_id, replace(self._inputs, spoken=begun))

    def more(self) -> StageInput | None:
        """Return new tokens since the last call for the stage named `stage`, None if none."""
        if not self._tokens and not self._closed:
            return None
        return {"body": self._take(), "complete": self._closed}

    @property
    def stage(self) -> str:
        """The stage that receives `more`."""
        return STAGE

    def _needed(self) -> int:
        """Return the number of prompt tokens: those paired with a recording's frames, or one."""
        if not self._inputs.continue_reference or self._inputs.reference is None:
            return 1
        frames = -(-len(self._inputs.reference) // SAMPLES_PER_FRAME)
        return max(1, frames + 1 - len(self._inputs.spoken.reference))

    def _take(self) -> tuple[int, ...]:
        tokens, self._tokens = tuple(self._tokens), []
        return tokens


def load_builder(checkpoint: Path) -> Qwen3RequestBuilder:
    """Return the request builder of a checkpoint folder."""
    return Qwen3RequestBuilder(load_config(checkpoint), TextTokenizer(checkpoint))


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _pipeline_request(request_id: str, inputs: TalkerInput) -> PipelineRequest:
    payload = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
    return PipelineRequest(request_id, {STAGE: {**payload, "spoken": asdict(inputs.spoken)}})


def _voices(config: Qwen3TtsConfig) -> tuple[Voice, ...]:
    if config.kind is ModelKind.VOICE_DESIGN:
        return (Voice("designed", "Designed", "Designed from `instructions`.", OPENAI_VOICES),)
    if config.kind is ModelKind.BASE:
        return (Voice("reference", "Reference", "The speaker of `ref_audio`.", OPENAI_VOICES),)
    ids = list(config.speakers)
    return tuple(
        Voice(
            voice,
            voice.replace("_", " ").title(),
            f"Speaks {config.dialects[voice].replace('_', ' ')}."
            if voice in config.dialects
            else "",
            OPENAI_VOICES[index :: len(ids)],
        )
        for index, voice in enumerate(ids)
    )
