"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    SamplingOptions,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_layers.request_building import check_speakable, list_aliases, second_of_noise
from cantata_layers.request_options import field_schemas, parse_fields
from cantata_models.pocket_tts.config import FlowKind, PocketConfig, find_voices, load_config
from cantata_models.pocket_tts.plugin import ENCODER, TALKER
from cantata_models.pocket_tts.prompt import (
    PocketEncoderInput,
    PocketTalkerInput,
    PocketTextReader,
    TextPiece,
    load_reader,
)


class PocketOptions(BaseModel):
    """Request fields specific to this model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    sampler_decode_steps: Annotated[int, Field(ge=1, le=32)] = 1
    """Steps of the head for each frame. Only some checkpoints can take more than one."""
    noise_clamp: Annotated[float, Field(gt=0, le=100)] | None = None
    """No number of the noise may be further from 0 than this."""
    eos_threshold: Annotated[float, Field(ge=-1000, le=1000)] | None = None
    """Score above which a frame ends the text. Higher values make it go on for longer."""
    frames_after_eos: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Frames of 80 ms from the one that ends the text on. By default 3, or 5 after four words or
    fewer."""
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of frames of each piece of the text, 80 ms each."""


TOKENS_PER_SECOND, SPARE_SECONDS = 3.0, 2.0
"""A text of n tokens has at most n / 3 + 2 seconds: the published program gives up there."""
RECORDED = Voice("reference", "Reference", "The speaker of `ref_audio`.", list_aliases(0, 1))
"""Of a folder without voices."""
WARM_UP_FRAMES = 4


class PocketRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder` for one checkpoint."""

    def __init__(
        self, config: PocketConfig, reader: PocketTextReader, voices: tuple[str, ...]
    ) -> None:
        self._config, self._reader, self._published = config, reader, voices

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The voices that are published with the checkpoint, with OpenAI's names as aliases."""
        names = self._published
        return tuple(
            Voice(name, name.replace("_", " ").title(), "", list_aliases(index, len(names)))
            for index, name in enumerate(names)
        ) or (RECORDED,)

    @property
    def capabilities(self) -> Capabilities:
        """It follows recordings."""
        language = self._config.language
        return Capabilities(
            references=True,
            languages=() if language is None else (language,),
            sample_rate=self._config.mimi.sample_rate,
            options=field_schemas(PocketOptions),
        )

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for a few frames that imitates a second of noise."""
        rate = self._config.mimi.sample_rate
        return SpeechRequest(
            "Hello.",
            self.voices[0].id,
            reference=second_of_noise(rate),
            options={"max_new_tokens": WARM_UP_FRAMES},
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for each piece of the text. Raises InvalidRequest: there is
        no text to speak, or a field cannot be served."""
        options = parse_fields(request.options, PocketOptions)
        check_speakable(request.text)
        one_step = self._config.flow is not FlowKind.LSD
        if one_step and options.sampler_decode_steps > 1:
            raise InvalidRequest(
                "this checkpoint makes a frame in one step; sampler_decode_steps must be 1",
                "sampler_decode_steps",
            )
        voice: dict[str, StageInput] = {}
        if request.reference is not None:
            reference = request.reference
            voice[ENCODER] = PocketEncoderInput(reference.mono, reference.sample_rate)
        elif not self._published:
            raise InvalidRequest(
                "this folder has no voices of its own (embeddings/NAME.safetensors); send "
                "ref_audio, a recording of the speaker to follow, or the name of an uploaded voice",
                "ref_audio",
            )
        seed = secrets.randbits(62) if request.seed is None else request.seed
        # With equal seeds, pieces of equal text would be equal sound.
        return tuple(
            PipelineRequest(
                f"{request_id}-{index}",
                {TALKER: self._speak(piece, request, options, seed + index), **voice},
            )
            for index, piece in enumerate(self._reader.read(request.text))
        )

    def _speak(
        self, piece: TextPiece, request: SpeechRequest, options: PocketOptions, seed: int
    ) -> PocketTalkerInput:
        config, temperature = self._config, request.temperature
        seconds = len(piece.tokens) / TOKENS_PER_SECOND + SPARE_SECONDS
        frames = math.ceil(seconds * config.mimi.sample_rate / config.mimi.samples_per_frame)
        after = _first(options.frames_after_eos, config.frames_after_eos, piece.frames_after_eos)
        return PocketTalkerInput(
            text=piece.tokens,
            voice=None if request.reference is not None else request.voice,
            max_frames=min(frames, options.max_new_tokens or frames),
            frames_after_eos=int(after),
            eos_threshold=_first(options.eos_threshold, config.eos_threshold),
            temperature=_first(temperature, config.temperature),
            noise_clamp=options.noise_clamp or 0.0,
            steps=options.sampler_decode_steps,
            sampling=SamplingOptions(seed=seed, temperature=0.0),
        )


def load_builder(checkpoint: Path) -> PocketRequestBuilder:
    """Return the request builder of a checkpoint folder. Raises ConfigError: its configuration or
    its tokenizer cannot be used, or a file is missing."""
    config = load_config(checkpoint)
    return PocketRequestBuilder(config, load_reader(config), tuple(find_voices(checkpoint)))


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
