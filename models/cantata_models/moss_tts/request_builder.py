"""Builds stage inputs from requests, in the api process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.request import (
    PipelineRequest,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata_layers.request_building import OPENAI_VOICES, check_speakable, second_of_noise
from cantata_layers.request_options import field_schemas, parse_fields
from cantata_models.moss_tts.config import MossConfig, load_local_config, load_nano_config
from cantata_models.moss_tts.plugin import ENCODER, TALKER
from cantata_models.moss_tts.prompt import (
    Fields,
    MossEncoderInput,
    MossMode,
    MossPromptBuilder,
    MossTalkerInput,
    MossTokenizer,
    joined,
)
from cantata_models.moss_tts.request_options import (
    LANGUAGES,
    LocalOptions,
    MossOptions,
    NanoOptions,
    get_sampling,
    language_name,
    speaking_mode,
)
from cantata_models.moss_tts.splitting import MossTextPart, split_text
from cantata_models.moss_tts.tokenizer_config import checked_tokenizer
from cantata_models.moss_tts.tokenizers import LocalTokenizer, NanoTokenizer

VOICE = Voice("default", "Default", "The model's own choice of a speaker.", OPENAI_VOICES)
WARM_UP_FRAMES = 12
WARM_UP_RATE = 48_000
Options = TypeVar("Options", bound=MossOptions)


@dataclass(frozen=True, slots=True)
class Asked(Generic[Options]):
    """A request and what its fields mean."""

    request: SpeechRequest
    options: Options
    mode: MossMode


class MossRequestBuilder(Generic[Options]):
    """Implements `contract.model.plugin.RequestBuilder`; each model says what differs."""

    options: type[Options]
    """The model's own request fields."""

    def __init__(self, config: MossConfig, tokenizer: MossTokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._prompts = MossPromptBuilder(config.tokens, tokenizer)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The only one; every other speaker comes with a recording."""
        return (VOICE,)

    @property
    def capabilities(self) -> Capabilities:
        """What both models can do."""
        return Capabilities(references=True, options=field_schemas(self.options))

    @property
    def warm_up(self) -> SpeechRequest:
        """A request for a second of speech that imitates a second of noise."""
        return SpeechRequest(
            "Hello.",
            VOICE.id,
            reference=second_of_noise(WARM_UP_RATE, channels=2),
            options={"max_new_tokens": WARM_UP_FRAMES},
        )

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return one pipeline request for each part of the text. Raises InvalidRequest: there is no
        text to speak, or a field cannot be served."""
        asked = self._check_fields(request)
        inputs: dict[str, StageInput] = {}
        if request.reference is not None:
            reference = request.reference
            inputs[ENCODER] = MossEncoderInput(reference.samples, reference.sample_rate)
        sampling = get_sampling(request, asked.options, self._config.generation)
        return tuple(
            PipelineRequest(
                f"{request_id}-{index}",
                inputs
                | {
                    TALKER: MossTalkerInput(
                        prompt=self._prompts.build(
                            self._with_transcript(asked, part.text),
                            asked.mode,
                            described=self._described(asked),
                        ),
                        continues=asked.mode is MossMode.CONTINUATION,
                        max_frames=asked.options.max_new_tokens,
                        # With equal seeds, parts of equal text would be equal sound.
                        sampling=replace(sampling, seed=sampling.seed + index),
                    )
                },
                silence_before_s=part.silence_before_s,
            )
            for index, part in enumerate(self._parts(asked))
        )

    def _check_fields(self, request: SpeechRequest) -> Asked[Options]:
        """Check a request's fields. Raises InvalidRequest: there is no text to speak, or a field
        cannot be served."""
        options = parse_fields(request.options, self.options)
        check_speakable(request.text)
        mode = speaking_mode(
            options,
            recording=request.reference is not None,
            transcript=bool(_read_transcript(request)),
        )
        return Asked(request, options, mode)

    def _with_transcript(self, asked: Asked[Options], text: str) -> str:
        if asked.mode is not MossMode.CONTINUATION:
            return text
        return joined(_read_transcript(asked.request), text)

    def _parts(self, asked: Asked[Options]) -> Iterable[MossTextPart]:
        """Return what is spoken in one go each: here, everything."""
        return (MossTextPart(asked.request.text.strip(), 0.0),)

    def _described(self, asked: Asked[Options]) -> Fields | None:
        """Return what the prompt says about the speech: here, nothing."""
        return None


class LocalRequestBuilder(MossRequestBuilder[LocalOptions]):
    """MOSS-TTS-Local's: it follows descriptions of the speech."""

    options = LocalOptions

    @property
    def capabilities(self) -> Capabilities:
        """With instructions, languages, and pauses that the model makes itself."""
        return replace(
            super().capabilities, instructions=True, pauses=True, languages=tuple(LANGUAGES)
        )

    def _described(self, asked: Asked[LocalOptions]) -> Fields:
        options = asked.options
        return Fields(
            instruction=asked.request.instructions,
            tokens=options.tokens,
            quality=options.quality,
            sound_event=options.sound_event,
            ambient_sound=options.ambient_sound,
            language=language_name(options.language),
        )


class NanoRequestBuilder(MossRequestBuilder[NanoOptions]):
    """MOSS-TTS-Nano's: it imitates a speaker for one part of a long text at a time."""

    options = NanoOptions

    def _parts(self, asked: Asked[NanoOptions]) -> Iterable[MossTextPart]:
        if asked.mode is not MossMode.CLONE:
            return super()._parts(asked)
        max_tokens = asked.options.voice_clone_max_text_tokens
        return split_text(asked.request.text.strip(), self._count_tokens, max_tokens)

    def _count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text))


def load_local_builder(checkpoint: Path) -> LocalRequestBuilder:
    """Return the request builder of a checkpoint of MOSS-TTS-Local.

    The audio tokenizer is looked for here too, before any process is started.

    Raises:
        ConfigError: its configuration or one of its tokenizers cannot be used.
    """
    config = load_local_config(checkpoint)
    checked_tokenizer(checkpoint, config)
    return LocalRequestBuilder(config, LocalTokenizer(checkpoint))


def load_nano_builder(checkpoint: Path) -> NanoRequestBuilder:
    """Return that of a checkpoint of MOSS-TTS-Nano; as `load_local_builder`."""
    config = load_nano_config(checkpoint)
    checked_tokenizer(checkpoint, config)
    return NanoRequestBuilder(config, NanoTokenizer(checkpoint))


def _read_transcript(request: SpeechRequest) -> str:
    return "" if request.reference is None else (request.reference.transcript or "").strip()
