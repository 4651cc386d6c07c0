"""Builds stage inputs from requests, in the api process: what both layouts share, and S1's."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import soxr
from numpy.typing import NDArray

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
from cantata_layers.openai_voices import OPENAI_VOICES
from cantata_layers.recordings import second_of_noise
from cantata_layers.request_options import field_schemas, parse_fields
from cantata_layers.sampling_settings import SamplingSettings
from cantata_layers.speakable import check_speakable
from cantata_models.fish_speech.config import (
    SAMPLE_RATE,
    SAMPLES_PER_FRAME,
    FishConfig,
    Layout,
    load_config,
)
from cantata_models.fish_speech.inputs import EncoderInput, Recorded, TalkerInput
from cantata_models.fish_speech.pipeline import ENCODER, TALKER
from cantata_models.fish_speech.prompt import Prompt, PromptBuilder, S1Prompts
from cantata_models.fish_speech.request_options import S1Options, SharedOptions
from cantata_models.fish_speech.text.special_tokens import SPEAKER, SPEAKER_TAG
from cantata_models.fish_speech.text.tokenizers import S1Tokenizer, check_plain

VOICE = Voice("default", "Default", "The model's own choice of a speaker.", OPENAI_VOICES)
WARM_UP_FRAMES = 12
S1_PENALTY = 1.2
S1_DEFAULTS = SamplingSettings(temperature=0.7, top_k=0, top_p=0.7)
MAX_SEED = 2**63
MAX_REFERENCES = 4
"""As many recordings of 15 s leave two thirds of a deployed request's positions."""
Samples = NDArray[np.float32]
Options = TypeVar("Options", bound=SharedOptions)


@dataclass(frozen=True, slots=True)
class Defaults:
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
        prompts: PromptBuilder,
        options: type[Options],
        defaults: Defaults,
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
            speaker_tag=SPEAKER.format("{n}") if self._config.layout is Layout.S2 else "",
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
        transcripts = self._transcripts(request.references)
        recordings = tuple(_resampled(reference) for reference in request.references)
        inputs: dict[str, StageInput] = {ENCODER: EncoderInput(recordings)} if recordings else {}
        sampling = self._sampling(request, options)
        talkers = [
            self._talker_input(
                self._prompts.build(group, transcripts),
                recordings,
                options,
                # With equal seeds, parts of equal text would begin with equal sound.
                replace(sampling, seed=(sampling.seed + number) % MAX_SEED),
            )
            for number, group in enumerate(self._groups(text, options))
        ]
        ids = [f"{request_id}-{number}" for number in range(len(talkers))]
        return tuple(
            PipelineRequest(
                ids[number],
                inputs | {TALKER: talker},
                continuation=self._continuation(ids[:number], talkers[: number + 1], inputs),
            )
            for number, talker in enumerate(talkers)
        )

    def _groups(self, text: str, options: Options) -> tuple[str, ...]:
        """Return the parts of a text that are spoken in one go each: here, everything."""
        return (text,)

    def _continuation(
        self,
        earlier: Sequence[str],
        talkers: Sequence[TalkerInput],
        inputs: Mapping[str, StageInput],
    ) -> Continuation | None:
        """Return how the last of these parts takes up the ones before it: here, not at all."""
        return None

    def _talker_input(
        self,
        prompt: Prompt,
        recordings: Sequence[Samples],
        options: Options,
        sampling: SamplingOptions,
    ) -> TalkerInput:
        lengths = (-(-len(samples) // SAMPLES_PER_FRAME) for samples in recordings)
        return TalkerInput(
            tokens=prompt.tokens,
            recordings=tuple(map(Recorded, prompt.recordings_at, lengths)),
            max_frames=options.max_new_tokens and options.max_new_tokens - 1,
            sampling=sampling,
            spoken_at=prompt.spoken_at,
        )

    def _transcripts(self, references: Sequence[ReferenceAudio]) -> list[str]:
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

    def _sampling(self, request: SpeechRequest, options: Options) -> SamplingOptions:
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
    config = load_config(checkpoint, Layout.S1)
    prompts = S1Prompts(S1Tokenizer(checkpoint), config.special)
    return FishRequestBuilder(config, prompts, S1Options, Defaults(S1_DEFAULTS, S1_PENALTY))


def _resampled(reference: ReferenceAudio) -> Samples:
    """Return a recording as one channel at the codec's rate."""
    samples = reference.mono
    if reference.sample_rate != SAMPLE_RATE:
        samples = soxr.resample(samples, reference.sample_rate, SAMPLE_RATE)
    return np.ascontiguousarray(samples, np.float32)
