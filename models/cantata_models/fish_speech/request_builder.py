"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import soxr

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    ReferenceAudio,
    SamplingOptions,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_layers.openai_voices import OPENAI_VOICES
from cantata_layers.request_options import parse_fields
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.fish_speech.config import SAMPLE_RATE, FishConfig, Layout, load_config
from cantata_models.fish_speech.inputs import EncoderInput, TalkerInput
from cantata_models.fish_speech.pipeline import ENCODER, TALKER
from cantata_models.fish_speech.prompt import PromptBuilder, S1Prompts, S2Prompts
from cantata_models.fish_speech.request_options import S1Options, S2Options, SharedOptions
from cantata_models.fish_speech.text.special_tokens import SPEAKER_TAG
from cantata_models.fish_speech.text.tokenizers import S1Tokenizer, S2Tokenizer, check_plain

VOICE = Voice("default", "Default", "The model's own choice of a speaker.", OPENAI_VOICES)
WARM_UP_FRAMES = 12
S1_PENALTY = 1.2
S2_DEFAULTS = SamplingSettings(temperature=0.8, top_k=30, top_p=0.8)
S1_DEFAULTS = SamplingSettings(temperature=0.7, top_k=0, top_p=0.7)
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
        return Capabilities(references=True, options=tuple(self._options.model_fields))

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for half a second of speech that imitates a second of noise."""
        noise = np.random.default_rng(0).normal(0, 0.1, (SAMPLE_RATE, 1)).astype(np.float32)
        return SpeechRequest(
            "Hello.",
            VOICE.id,
            reference=ReferenceAudio(noise, SAMPLE_RATE, "Hello."),
            options={"max_new_tokens": WARM_UP_FRAMES + 1},
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for the whole text, all its speakers' turns together.

        Raises:
            InvalidRequest: there is no text to speak, it has special tokens, a recording has no
                transcript, or an option is invalid.
        """
        options = parse_fields(request.options, self._options)
        text = request.text.strip()
        check_plain(text, self._config.special, "input")
        if not any(character.isalnum() for character in SPEAKER_TAG.sub("", text)):
            raise InvalidRequest("the text holds nothing that can be spoken", "input")
        prompt = self._prompts.build(text, self._transcript(request.reference))
        talker = TalkerInput(
            tokens=prompt.tokens,
            recording_at=prompt.recording_at,
            max_frames=options.max_new_tokens and options.max_new_tokens - 1,
            sampling=self._sampling(request, options),
        )
        inputs: dict[str, StageInput] = {TALKER: talker}
        if request.reference is not None:
            inputs[ENCODER] = EncoderInput(_resampled(request.reference))
        return (PipelineRequest(f"{request_id}-0", inputs),)

    def _transcript(self, reference: ReferenceAudio | None) -> str | None:
        """Return what is said in a recording."""
        if reference is None:
            return None
        transcript = (reference.transcript or "").strip()
        if not transcript:
            raise InvalidRequest(
                "ref_text is missing: this model needs the recording's transcript", "ref_text"
            )
        check_plain(transcript, self._config.special, "ref_text")
        return transcript

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


def load_s2_builder(checkpoint: Path) -> FishRequestBuilder[S2Options]:
    """Return the request builder of an S2 checkpoint.

    Raises:
        ConfigError: its configuration or its tokenizer cannot be used.
    """
    config = load_config(checkpoint, Layout.S2)
    prompts = S2Prompts(S2Tokenizer(checkpoint), config.special)
    return FishRequestBuilder(config, prompts, S2Options, Defaults(S2_DEFAULTS, None))


def load_s1_builder(checkpoint: Path) -> FishRequestBuilder[S1Options]:
    """Return that of an S1 checkpoint; as `load_s2_builder`."""
    config = load_config(checkpoint, Layout.S1)
    prompts = S1Prompts(S1Tokenizer(checkpoint), config.special)
    return FishRequestBuilder(config, prompts, S1Options, Defaults(S1_DEFAULTS, S1_PENALTY))


def _resampled(reference: ReferenceAudio) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return a recording as one channel at the codec's rate."""
    samples = reference.mono
    if reference.sample_rate != SAMPLE_RATE:
        samples = soxr.resample(samples, reference.sample_rate, SAMPLE_RATE)
    return np.ascontiguousarray(samples, np.float32)
