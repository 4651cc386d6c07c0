"""Turns conversations into the stages' inputs."""

from __future__ import annotations

import secrets
from pathlib import Path

from cantata.contract.data import chat
from cantata.contract.data.chat import ChatRequest, Modality
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, StageInput, Voice
from cantata.contract.model.conversation import PlannedAnswer
from cantata_layers.omni.conversation import thinker_input, to_message
from cantata_layers.omni.inputs import EncoderInput
from cantata_layers.omni.prompt import Prompt
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.request_building import list_aliases
from cantata_layers.token_text import TokenReader
from cantata_models.qwen25_omni.config import load_config, load_thinker_config, speaks
from cantata_models.qwen25_omni.plugin import ENCODER, SPEAKING, TALKER, THINKER, TOKEN2WAV
from cantata_models.qwen25_omni.prompt import Qwen25OmniPromptBuilder
from cantata_models.qwen25_omni.rows import Qwen25OmniTalkerInput, Token2WavInput
from cantata_models.qwen25_omni.speakers import load_speakers

TEMPERATURE, TOP_K, TOP_P, REPETITION_PENALTY = 0.9, 40, 0.8, 1.05
"""Of the talker: defaults of the reference's `generate`, in no file of a checkpoint."""


class Qwen25OmniChatBuilder:
    """Implements `contract.model.conversation.ChatBuilder`.

    Raises:
        ConfigError: a file is missing, or a value is wrong or not served.
    """

    takes = frozenset(Modality)
    text = f"{THINKER}.codes"

    def __init__(self, checkpoint: Path) -> None:
        config = load_thinker_config(checkpoint)
        self._sampling = config.sampling
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self._prompts = Qwen25OmniPromptBuilder(checkpoint, config, self._tokenizer)
        self.voices = _list_voices(checkpoint)

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
            InvalidRequest: a part cannot be read, or is in a turn that is not the user's, or there
                is no such voice.
        """
        prompt = self._prompts.build([to_message(message) for message in request.messages])
        seed = secrets.randbits(63) if request.seed is None else request.seed
        spoken = request.voice is not None
        inputs: dict[str, StageInput] = {
            THINKER: thinker_input(request, prompt, self._sampling, seed=seed, exports_rows=spoken),
        }
        if prompt.placements:
            inputs[ENCODER] = EncoderInput(tuple(media for media, _ in prompt.media))
        if request.voice is not None:
            speaker = self._find_speaker(request.voice)
            greedy = request.temperature == 0
            inputs[TALKER] = self._build_talker_input(prompt, speaker, seed, greedy=greedy)
            inputs[TOKEN2WAV] = Token2WavInput(speaker, seed)
        return PlannedAnswer(
            PipelineRequest(request_id, inputs, without=frozenset() if spoken else SPEAKING),
            len(prompt.tokens),
        )

    def reader(self) -> TokenReader:
        return TokenReader(self._tokenizer)

    def call_reader(self) -> None:
        """The published template has no tools."""

    def _build_talker_input(
        self, prompt: Prompt, speaker: str, seed: int, *, greedy: bool
    ) -> Qwen25OmniTalkerInput:
        return Qwen25OmniTalkerInput(
            prompt_rows=len(prompt.tokens),
            speaker=speaker,
            max_frames=None,
            positions=self._prompts.spoken_positions(prompt),
            sampling=SamplingOptions(
                seed=seed,
                temperature=0.0 if greedy else TEMPERATURE,
                top_k=TOP_K,
                top_p=TOP_P,
                repetition_penalty=REPETITION_PENALTY,
            ),
        )

    def _find_speaker(self, voice: str) -> str:
        names = [known.name for known in self.voices if known.id == voice]
        if not names:
            raise InvalidRequest(f"this checkpoint has no voice {voice!r}", "audio.voice")
        return names[0]


def _list_voices(checkpoint: Path) -> tuple[Voice, ...]:
    if not speaks(checkpoint):
        return ()
    names = load_speakers(checkpoint, load_config(checkpoint))
    return tuple(
        Voice(name, name, aliases=list_aliases(index, len(names)))
        for index, name in enumerate(names)
    )
