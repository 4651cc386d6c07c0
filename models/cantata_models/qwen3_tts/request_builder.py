"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    SamplingOptions,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_layers.request_building import (
    OPENAI_VOICES,
    check_speakable,
    list_aliases,
    second_of_noise,
)
from cantata_layers.request_options import field_schemas
from cantata_models.qwen3_tts.config import ModelKind, Qwen3TtsConfig, load_config
from cantata_models.qwen3_tts.plugin import ENCODER, TALKER
from cantata_models.qwen3_tts.prompt import (
    LaterText,
    Qwen3TtsArrivingText,
    Qwen3TtsEncoderInput,
    Qwen3TtsSpokenText,
    Qwen3TtsTalkerInput,
    Qwen3TtsTokenizer,
)
from cantata_models.qwen3_tts.request_options import (
    LANGUAGE_TAGS,
    Qwen3TtsOptions,
    language_code,
    parse_options,
)

SAMPLE_RATE = 24_000
"""Sample rate that the encoders expect, in Hz."""
SAMPLES_PER_FRAME = 1920
WARM_UP_FRAMES = 12


@dataclass(frozen=True, slots=True)
class Inputs:
    talker: Qwen3TtsTalkerInput
    encoder: Qwen3TtsEncoderInput | None

    def with_text(self, body: tuple[int, ...], *, complete: bool) -> Inputs:
        """Return the same for another text."""
        spoken = replace(self.talker.spoken, body=body, complete=complete)
        return replace(self, talker=replace(self.talker, spoken=spoken))

    def as_request(self, request_id: str) -> PipelineRequest:
        inputs: dict[str, StageInput] = {TALKER: self.talker}
        if self.encoder is not None:
            inputs[ENCODER] = self.encoder
        return PipelineRequest(request_id, inputs)


class Qwen3RequestBuilder:
    """Implements `contract.model.plugin.OpenRequestBuilder` for one checkpoint."""

    def __init__(self, config: Qwen3TtsConfig, tokenizer: Qwen3TtsTokenizer) -> None:
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
            options=field_schemas(Qwen3TtsOptions),
        )

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for a second of speech. A Base checkpoint gets noise as its recording."""
        options: dict[str, Any] = {"max_new_tokens": WARM_UP_FRAMES + 1}
        reference = None
        if self._config.kind is ModelKind.BASE:
            reference = second_of_noise(SAMPLE_RATE, transcript="Hello.")
        return SpeechRequest("Hello.", self._voices[0].id, reference=reference, options=options)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for the whole text.

        Raises:
            InvalidRequest: there is no text to speak, or this checkpoint does not support a field.
        """
        options = parse_options(request.options, self._config)
        body = self._tokenizer.encode(self._tokenizer.normalize(request.text).strip())
        check_speakable(request.text)
        streamed = not self._puts_text_first(options)
        inputs = self._inputs(request, options, body, complete=True, streamed=streamed)
        return (inputs.as_request(f"{request_id}-0"),)

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

    def _puts_text_first(self, options: Qwen3TtsOptions) -> bool:
        if options.non_streaming_mode is None:
            return self._config.kind is not ModelKind.BASE
        return options.non_streaming_mode

    def _inputs(
        self,
        request: SpeechRequest,
        options: Qwen3TtsOptions,
        body: tuple[int, ...],
        *,
        complete: bool,
        streamed: bool,
    ) -> Inputs:
        config = self._config
        own_voice = request.voice if config.kind is ModelKind.CUSTOM_VOICE else None
        encoder = self._build_encoder_input(request, options)
        transcript = request.reference.transcript if request.reference else None
        continues = encoder is not None and encoder.frames
        instruction = request.instructions if config.follows_instructions else None
        spoken = Qwen3TtsSpokenText(
            role=self._tokenizer.role,
            body=body,
            complete=complete,
            instruction=self._tokenizer.instruction(instruction or ""),
            reference=self._tokenizer.encode((transcript or "").strip()) if continues else (),
        )
        talker = Qwen3TtsTalkerInput(
            spoken=spoken,
            language=language_code(options.language, own_voice, config),
            speaker=config.speakers[own_voice] if own_voice is not None else None,
            follows_recording=encoder is not None,
            streamed=streamed,
            max_frames=options.max_new_tokens and options.max_new_tokens - 1,
            sampling=self._choose_sampling(request, options),
        )
        return Inputs(talker, encoder)

    def _build_encoder_input(
        self, request: SpeechRequest, options: Qwen3TtsOptions
    ) -> Qwen3TtsEncoderInput | None:
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
        continues = not options.x_vector_only_mode
        return Qwen3TtsEncoderInput(np.ascontiguousarray(samples, np.float32), frames=continues)

    def _choose_sampling(self, request: SpeechRequest, options: Qwen3TtsOptions) -> SamplingOptions:
        """Return sampling settings: the request's for both levels, else each level's default."""
        generation = self._config.generation
        first, residual = generation.first, generation.residual
        own_penalty = options.repetition_penalty
        return SamplingOptions(
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            temperature=_or(request.temperature, first.temperature),
            top_k=_or(options.top_k, first.top_k),
            top_p=_or(options.top_p, first.top_p),
            repetition_penalty=_or(own_penalty, generation.repetition_penalty),
            residual_temperature=_or(request.temperature, residual.temperature),
            residual_top_k=_or(options.top_k, residual.top_k),
            residual_top_p=_or(options.top_p, residual.top_p),
        )


class OpenTalkerText:
    """Implements `contract.model.plugin.TextFeed`: tokenizes text as it arrives."""

    stage = TALKER

    def __init__(self, request_id: str, inputs: Inputs, tokenizer: Qwen3TtsTokenizer) -> None:
        self._request_id = request_id
        self._inputs = inputs
        self._text = Qwen3TtsArrivingText(tokenizer)
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
        if not self._closed and len(self._tokens) < self._count_needed():
            return None
        started = self._inputs.with_text(self._take(), complete=self._closed)
        return started.as_request(self._request_id)

    def more(self) -> LaterText | None:
        """Return new tokens since the last call for the stage named `stage`, None if none."""
        if not self._tokens and not self._closed:
            return None
        return LaterText(self._take(), self._closed)

    def _count_needed(self) -> int:
        """Return the number of prompt tokens: those paired with a recording's frames, or one."""
        recording = self._inputs.encoder
        if recording is None or not recording.frames:
            return 1
        frames = -(-len(recording.samples) // SAMPLES_PER_FRAME)
        return max(1, frames + 1 - len(self._inputs.talker.spoken.reference))

    def _take(self) -> tuple[int, ...]:
        tokens, self._tokens = tuple(self._tokens), []
        return tokens


def load_builder(checkpoint: Path) -> Qwen3RequestBuilder:
    """Return the request builder of a checkpoint folder."""
    return Qwen3RequestBuilder(load_config(checkpoint), Qwen3TtsTokenizer(checkpoint))


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


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
            list_aliases(index, len(ids)),
        )
        for index, voice in enumerate(ids)
    )
