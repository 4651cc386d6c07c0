"""Builds stage inputs from requests, in the api process, in both layouts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import soxr
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    Continuation,
    PipelineRequest,
    ReferenceAudio,
    SamplingOptions,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_layers.request_building import OPENAI_VOICES, check_speakable, second_of_noise
from cantata_layers.request_options import TopK, field_schemas, parse_fields
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.fish_speech.config import (
    SAMPLE_RATE,
    SAMPLES_PER_FRAME,
    FishConfig,
    FishLayout,
    load_config,
)
from cantata_models.fish_speech.plugin import ENCODER, S2_CODES, TALKER
from cantata_models.fish_speech.prompt import (
    FishEncoderInput,
    FishPrompt,
    FishPromptBuilder,
    FishTalkerInput,
    Recorded,
    S1Prompts,
    S2Prompts,
    SpokenBefore,
)
from cantata_models.fish_speech.tokenizers import (
    SPEAKER,
    SPEAKER_TAG,
    S1Tokenizer,
    S2Tokenizer,
    check_plain,
)
from cantata_models.fish_speech.turns import DEFAULT_BYTES, grouped


class FishOptions(BaseModel):
    """Request fields of both layouts. None means the published default."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Of the plain distribution, before the temperature."""
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    """S2 accepts it and does not use it: it draws repeated codes again instead."""
    max_new_tokens: Annotated[int, Field(ge=2)] | None = None
    """One more than the maximum number of frames of what is spoken in one go."""


class S1Options(FishOptions):
    """S1's."""


class S2Options(FishOptions):
    chunk_length: Annotated[int, Field(ge=1)] = DEFAULT_BYTES
    """The most bytes of a group of turns, in UTF-8."""

    top_k: TopK | None = None
    """0 means all."""


VOICE = Voice("default", "Default", "The model's own choice of a speaker.", OPENAI_VOICES)
WARM_UP_FRAMES = 12
S1_PENALTY = 1.2
S1_DEFAULTS = SamplingSettings(temperature=0.7, top_k=0, top_p=0.7)
MAX_SEED = 2**63
MAX_REFERENCES = 4
"""As many recordings of 15 s leave two thirds of a deployed request's positions."""
Samples = NDArray[np.float32]
Options = TypeVar("Options", bound=FishOptions)


@dataclass(frozen=True, slots=True)
class FishSamplingDefaults:
    """How a layout samples where a request does not say."""

    sampling: SamplingSettings
    penalty: float | None
    """None: the layout has none, whatever a request says."""


class FishRequestBuilder(Generic[Options]):
    """Implements `contract.model.plugin.RequestBuilder` for one checkpoint.

    Args:
        config: of the checkpoint.
        prompts: of its layout.
        options: its layout's own request fields.
        defaults: its layout's.
    """

    def __init__(
        self,
        config: FishConfig,
        prompts: FishPromptBuilder,
        options: type[Options],
        defaults: FishSamplingDefaults,
    ) -> None:
        self._config, self._prompts = config, prompts
        self._options, self._defaults = options, defaults

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The only one, another speaker each time; every other voice comes with a recording."""
        return (VOICE,)

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        return Capabilities(
            references=True,
            max_references=MAX_REFERENCES,
            speaker_tag=SPEAKER.format("{n}") if self._config.layout is FishLayout.S2 else "",
            options=field_schemas(self._options),
        )

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for half a second of speech that imitates a second of noise."""
        return SpeechRequest(
            "Hello.",
            VOICE.id,
            reference=second_of_noise(SAMPLE_RATE, transcript="Hello."),
            options={"max_new_tokens": WARM_UP_FRAMES + 1},
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return a pipeline request for each part of the text that is spoken in one go.

        Raises:
            InvalidRequest: there is no text to speak, it has special tokens, a recording has no
                transcript, or an option is invalid.
        """
        options = parse_fields(request.options, self._options)
        text = request.text.strip()
        check_plain(text, self._config.special, "input")
        check_speakable(SPEAKER_TAG.sub("", text))
        transcripts = self._list_transcripts(request.references)
        recordings = tuple(_resample(reference) for reference in request.references)
        inputs: dict[str, StageInput] = (
            {ENCODER: FishEncoderInput(recordings)} if recordings else {}
        )
        sampling = self._choose_sampling(request, options)
        talkers = [
            self._build_talker_input(
                self._prompts.build(group, transcripts),
                recordings,
                options,
                # With equal seeds, parts of equal text would begin with equal sound.
                replace(sampling, seed=(sampling.seed + number) % MAX_SEED),
            )
            for number, group in enumerate(self._group_text(text, options))
        ]
        ids = [f"{request_id}-{number}" for number in range(len(talkers))]
        return tuple(
            PipelineRequest(
                ids[number],
                inputs | {TALKER: talker},
                continuation=self._build_continuation(ids[:number], talkers[: number + 1], inputs),
            )
            for number, talker in enumerate(talkers)
        )

    def _group_text(self, text: str, options: Options) -> tuple[str, ...]:
        """Return the parts of a text that are spoken in one go each: here, everything."""
        return (text,)

    def _build_continuation(
        self,
        earlier: Sequence[str],
        talkers: Sequence[FishTalkerInput],
        inputs: Mapping[str, StageInput],
    ) -> Continuation | None:
        """Return how the last of these parts takes up the ones before it: here, not at all."""
        return None

    def _build_talker_input(
        self,
        prompt: FishPrompt,
        recordings: Sequence[Samples],
        options: Options,
        sampling: SamplingOptions,
    ) -> FishTalkerInput:
        lengths = (-(-len(samples) // SAMPLES_PER_FRAME) for samples in recordings)
        return FishTalkerInput(
            tokens=prompt.tokens,
            recordings=tuple(map(Recorded, prompt.recordings_at, lengths)),
            max_frames=options.max_new_tokens and options.max_new_tokens - 1,
            sampling=sampling,
            spoken_at=prompt.spoken_at,
        )

    def _list_transcripts(self, references: Sequence[ReferenceAudio]) -> list[str]:
        """Return what is said in each recording."""
        transcripts = [(reference.transcript or "").strip() for reference in references]
        for number, transcript in enumerate(transcripts):
            if not transcript:
                which = f" {number + 1}" if len(transcripts) > 1 else ""
                raise InvalidRequest(
                    f"ref_text is missing: this model needs the transcript of recording{which}",
                    "ref_text",
                )
            check_plain(transcript, self._config.special, "ref_text")
        return transcripts

    def _choose_sampling(self, request: SpeechRequest, options: Options) -> SamplingOptions:
        """Return sampling settings, the same for all codes of a frame."""
        settings, default_penalty = self._defaults.sampling, self._defaults.penalty
        temperature, top_k = request.temperature, getattr(options, "top_k", None)
        penalty = None
        if default_penalty is not None:
            penalty = options.repetition_penalty or default_penalty
        return SamplingOptions(
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            temperature=settings.temperature if temperature is None else temperature,
            top_k=settings.top_k if top_k is None else top_k,
            top_p=options.top_p or settings.top_p,
            repetition_penalty=penalty or 1.0,
            residual_repetition_penalty=penalty,
        )


def load_s1_builder(checkpoint: Path) -> FishRequestBuilder[S1Options]:
    """Return the request builder of an S1 checkpoint.

    Raises:
        ConfigError: its configuration or its tokenizer cannot be used.
    """
    config = load_config(checkpoint, FishLayout.S1)
    prompts = S1Prompts(S1Tokenizer(checkpoint), config.special)
    return FishRequestBuilder(
        config, prompts, S1Options, FishSamplingDefaults(S1_DEFAULTS, S1_PENALTY)
    )


def _resample(reference: ReferenceAudio) -> Samples:
    """Return a recording as one channel at the codec's rate."""
    samples = reference.mono
    if reference.sample_rate != SAMPLE_RATE:
        samples = soxr.resample(samples, reference.sample_rate, SAMPLE_RATE)
    return np.ascontiguousarray(samples, np.float32)


DEFAULTS = FishSamplingDefaults(
    SamplingSettings(temperature=0.8, top_k=30, top_p=0.8), penalty=None
)


class S2RequestBuilder(FishRequestBuilder[S2Options]):
    """S2's: it speaks a text with several speakers in groups of turns, each behind those that were
    spoken before.

    Args:
        config: of the checkpoint.
        prompts: its own.
    """

    def __init__(self, config: FishConfig, prompts: S2Prompts) -> None:
        super().__init__(config, prompts, S2Options, DEFAULTS)
        self._chat = prompts

    def _group_text(self, text: str, options: S2Options) -> tuple[str, ...]:
        return grouped(text, options.chunk_length)

    def _build_continuation(
        self,
        earlier: Sequence[str],
        talkers: Sequence[FishTalkerInput],
        inputs: Mapping[str, StageInput],
    ) -> Continuation | None:
        if not earlier:
            return None
        *before, talker = talkers
        end = self._chat.end

        def behind(stated: Sequence[Any]) -> Mapping[str, StageInput]:
            spoken = tuple(
                SpokenBefore(one.tokens[one.spoken_at :], codes.values, end)
                for one, codes in zip(before, stated, strict=True)
            )
            return {**inputs, TALKER: replace(talker, spoken=spoken)}

        return Continuation(tuple(earlier), S2_CODES, behind)


def load_s2_builder(checkpoint: Path) -> S2RequestBuilder:
    """Return the request builder of an S2 checkpoint.

    Raises:
        ConfigError: its configuration or its tokenizer cannot be used.
    """
    config = load_config(checkpoint, FishLayout.S2)
    return S2RequestBuilder(config, S2Prompts(S2Tokenizer(checkpoint), config.special))
