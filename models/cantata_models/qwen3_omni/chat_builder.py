"""How a request's speech is sampled."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from cantata.contract.data import chat
from cantata.contract.data.chat import ChatRequest, Modality
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, StageInput, Voice
from cantata.contract.model.conversation import PlannedAnswer
from cantata_layers.omni.conversation import thinker_input, to_message
from cantata_layers.omni.inputs import EncoderInput, sound_rows
from cantata_layers.omni.preprocess import Preprocessor, SoundRules
from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_layers.omni.tools import ToolCallReader, ToolTemplate
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.request_building import list_aliases
from cantata_layers.token_text import TokenReader
from cantata_models.qwen3_omni.config import OmniConfig, SpeechConfig, TalkerSampling, load_config
from cantata_models.qwen3_omni.plugin import ENCODER, SPEAKERS, TALKER, THINKER
from cantata_models.qwen3_omni.prompt import HeardPrompt, Qwen3OmniPromptBuilder
from cantata_models.qwen3_omni.talker_rows import Qwen3OmniTalkerInput


def speech_sampling(defaults: TalkerSampling, seed: int, *, greedy: bool) -> SamplingOptions:
    """Return the checkpoint's settings for both levels of a frame.

    Args:
        defaults: of the checkpoint.
        seed: of the draws.
        greedy: take the best code at both levels; the penalty of repetition stays.
    """
    first, residual = defaults.first, defaults.residual
    return SamplingOptions(
        seed=seed,
        temperature=0.0 if greedy else first.temperature,
        top_k=first.top_k,
        top_p=first.top_p,
        repetition_penalty=defaults.repetition_penalty,
        residual_temperature=0.0 if greedy else residual.temperature,
        residual_top_k=residual.top_k,
        residual_top_p=residual.top_p,
    )


class Qwen3OmniChatBuilder:
    """Implements `contract.model.conversation.ChatBuilder`.

    Args:
        checkpoint: its folder.

    Raises:
        ConfigError: a file is missing, or a value is wrong or not served.
    """

    takes = frozenset(Modality)
    text = f"{THINKER}.codes"

    def __init__(self, checkpoint: Path) -> None:
        self._config: OmniConfig = load_config(checkpoint)
        limits = load_preprocessor_config(checkpoint)
        preprocessor = Preprocessor(limits, self._config.thinker.vision, SoundRules(sound_rows))
        self._prompts = Qwen3OmniPromptBuilder(checkpoint, self._config, preprocessor)
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self._tools = ToolTemplate(checkpoint)
        self.voices = _list_voices(self._config.speech)

    @property
    def warm_up(self) -> ChatRequest:
        """A short greeting, spoken if the checkpoint speaks."""
        voice = self.voices[0].id if self.voices else None
        messages = (chat.Message(chat.Role.USER, (chat.TextPart("Hello."),)),)
        return ChatRequest(messages, voice, max_tokens=16)

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Return the inputs of the thinker, and of the stages that this conversation needs.

        Raises:
            InvalidAudio: a sound is too short or too long.
            InvalidRequest: a part cannot be read, or is in a turn that is not the user's.
        """
        prompt = self._prompts.build([to_message(one) for one in self._tools.written(request)])
        seed = secrets.randbits(63) if request.seed is None else request.seed
        media = tuple(media for media, _ in prompt.media)
        received = self._prompts.select_user_turns(prompt)
        inputs: dict[str, StageInput] = {
            THINKER: thinker_input(
                request,
                prompt,
                self._config.sampling,
                seed=seed,
                exports_rows=request.voice is not None and len(received.sources) > 0,
            ),
        }
        if media:
            inputs[ENCODER] = EncoderInput(media)
        if request.voice is not None:
            inputs[TALKER] = self._build_talker_input(request, received, seed)
        without = frozenset() if request.voice is not None else SPEAKERS
        return PlannedAnswer(
            PipelineRequest(request_id, inputs, without=without), len(prompt.tokens)
        )

    def reader(self) -> TokenReader:
        """A reader for one answer."""
        return TokenReader(self._tokenizer)

    def call_reader(self) -> ToolCallReader | None:
        """A reader of calls for one answer. None: the checkpoint's template has no tools."""
        return ToolCallReader() if self._tools.has_tools else None

    def _build_talker_input(
        self, request: ChatRequest, received: HeardPrompt, seed: int
    ) -> Qwen3OmniTalkerInput:
        speech, voice = self._config.speech, request.voice or ""
        if speech is None or voice not in speech.talker.speakers:
            raise InvalidRequest(f"this checkpoint has no voice {voice!r}", "audio.voice")
        return Qwen3OmniTalkerInput(
            user=received.tokens,
            media=received.media,
            sources=received.sources,
            positions=received.positions,
            role=self._prompts.role,
            speaker=speech.talker.speakers[voice],
            max_frames=None,
            sampling=speech_sampling(speech.sampling, seed, greedy=request.temperature == 0),
        )


def _list_voices(speech: SpeechConfig | None) -> tuple[Voice, ...]:
    speakers: Mapping[str, int] = {} if speech is None else speech.talker.speakers
    return tuple(
        Voice(name, name.title(), aliases=list_aliases(index, len(speakers)))
        for index, name in enumerate(speakers)
    )
