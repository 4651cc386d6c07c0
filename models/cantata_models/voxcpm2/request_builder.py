"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Literal

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
from cantata_layers.request_building import OPENAI_VOICES, check_speakable, second_of_noise
from cantata_layers.request_options import field_schemas, parse_fields, recording_mode
from cantata_models.voxcpm2.config import load_codec_config, load_config
from cantata_models.voxcpm2.plugin import ENCODER, TALKER
from cantata_models.voxcpm2.prompt import (
    DEFAULT_STEPS,
    VoxCpm2EncoderInput,
    VoxCpm2Mode,
    VoxCpm2TalkerInput,
    VoxCpm2Tokenizer,
    in_one_line,
)


class VoxCpm2Options(BaseModel):
    """Request fields specific to this model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    mode: Literal["voice_clone", "continuation", "combined"] | None = None
    """What a recording is for. By default, one with a transcript is continued, any other
    imitated."""
    inference_timesteps: Annotated[int, Field(ge=2, le=100)] = DEFAULT_STEPS
    """Steps of the solver for each patch; time follows from it. With one, sound would be noise."""
    cfg_value: Annotated[float, Field(ge=0, le=10)] = 2.0
    """Guidance: how closely a patch follows the text and the voice."""
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of patches, 160 ms each."""


VOICE = Voice("default", "Default", "The model's own choice of a speaker.", OPENAI_VOICES)
LANGUAGES = (
    *("ar", "my", "zh", "da", "nl", "en", "fi", "fr", "de", "el", "he", "hi", "id", "it", "ja"),
    *("km", "ko", "lo", "ms", "no", "pl", "pt", "ru", "es", "sw", "sv", "tl", "th", "tr", "vi"),
)
"""BCP 47 tags of what the model was trained on, by its authors' list."""
FRAMES_PER_TOKEN, SPARE_FRAMES = 6, 10
"""A text of n tokens has at most 6 n + 10 patches: the published program gives up there."""
MAX_FRAMES = 4096
WARM_UP_FRAMES = 4
WARM_UP_RATE = 16_000


class VoxCpm2RequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder`."""

    def __init__(self, tokenizer: VoxCpm2Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The only one; every other speaker comes with a recording or a description."""
        return (VOICE,)

    @property
    def capabilities(self) -> Capabilities:
        """It follows descriptions and recordings."""
        return Capabilities(
            instructions=True,
            references=True,
            languages=LANGUAGES,
            options=field_schemas(VoxCpm2Options),
        )

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for a few patches that imitates a second of noise."""
        return SpeechRequest(
            "Hello.",
            VOICE.id,
            reference=second_of_noise(WARM_UP_RATE),
            options={"max_new_tokens": WARM_UP_FRAMES},
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for the whole text.

        A temperature has no meaning here: a patch begins with noise of the seed, and the decision
        to stop is never drawn.

        Raises:
            InvalidRequest: there is no text to speak, or a field cannot be served.
        """
        options = parse_fields(request.options, VoxCpm2Options)
        check_speakable(request.text)
        transcript = _read_transcript(request)
        asked = recording_mode(
            options.mode, recording=request.reference is not None, transcript=bool(transcript)
        )
        mode = VoxCpm2Mode(asked or VoxCpm2Mode.PLAIN)
        text = in_one_line(request.text)
        description = in_one_line(request.instructions or "").strip()
        if description:
            if mode.continues:
                raise InvalidRequest(
                    "a recording that is continued leaves no room for instructions: they would be "
                    f"read aloud; leave them out or set mode to {VoxCpm2Mode.CLONE.value!r}",
                    "instructions",
                )
            text = f"({description}){text}"
        own = self._tokenizer.encode(text)
        frames = min(FRAMES_PER_TOKEN * len(own) + SPARE_FRAMES, MAX_FRAMES)
        inputs: dict[str, StageInput] = {
            TALKER: VoxCpm2TalkerInput(
                text=self._tokenizer.encode(transcript + text) if mode.continues else own,
                mode=mode,
                max_frames=min(frames, options.max_new_tokens or frames),
                steps=options.inference_timesteps,
                guidance=options.cfg_value,
                sampling=SamplingOptions(
                    seed=secrets.randbits(63) if request.seed is None else request.seed,
                    temperature=0.0,
                ),
            )
        }
        if request.reference is not None:
            reference = request.reference
            inputs[ENCODER] = VoxCpm2EncoderInput(reference.mono, reference.sample_rate, mode)
        return (PipelineRequest(f"{request_id}-0", inputs),)


def load_builder(checkpoint: Path) -> VoxCpm2RequestBuilder:
    """Return the request builder of a checkpoint folder.

    Its shapes are checked here too, before any process is started.

    Raises:
        ConfigError: its configuration or its tokenizer cannot be used.
    """
    load_config(checkpoint)
    load_codec_config(checkpoint)
    return VoxCpm2RequestBuilder(VoxCpm2Tokenizer(checkpoint))


def _read_transcript(request: SpeechRequest) -> str:
    """Return the recording's words; white space alone is none."""
    transcript = "" if request.reference is None else (request.reference.transcript or "")
    return transcript if transcript.strip() else ""
