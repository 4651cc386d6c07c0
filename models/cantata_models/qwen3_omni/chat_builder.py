"""Turns conversations into the stages' inputs."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from cantata.contract.data import chat
from cantata.contract.data.chat import ChatRequest, Modality
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, StageInput, Voice
from cantata.contract.model.conversation import PlannedAnswer
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_omni.config.checkpoint import OmniConfig, SpeechConfig, load_config
from cantata_models.qwen3_omni.config.preprocessor import RATE, load_preprocessor_config
from cantata_models.qwen3_omni.inputs import EncoderInput, TalkerInput, ThinkerInput
from cantata_models.qwen3_omni.messages import Message, Part, Picture, Role, Sound, Text, Video
from cantata_models.qwen3_omni.pipeline import ENCODER, SPEAKERS, TALKER, THINKER
from cantata_models.qwen3_omni.preprocess import Preprocessor
from cantata_models.qwen3_omni.prompt import HeardPrompt, Prompt, PromptBuilder
from cantata_models.qwen3_omni.sampling_options import speech_sampling


class OmniChatBuilder:
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
        preprocessor = Preprocessor(limits, self._config.thinker.vision)
        self._prompts = PromptBuilder(checkpoint, self._config, preprocessor)
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self.voices = _voices(self._config.speech)

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
        prompt = self._prompts.build([_message(message) for message in request.messages])
        seed = secrets.randbits(63) if request.seed is None else request.seed
        media = tuple(placement.media for placement in prompt.placements)
        heard = self._prompts.heard(prompt)
        inputs: dict[str, StageInput] = {
            THINKER: self._thinker(request, prompt, heard, seed),
        }
        if media:
            inputs[ENCODER] = EncoderInput(media)
        if request.voice is not None:
            inputs[TALKER] = self._talker(request, heard, seed)
        without = frozenset() if request.voice is not None else SPEAKERS
        return PlannedAnswer(
            PipelineRequest(request_id, inputs, without=without), len(prompt.tokens)
        )

    def reader(self) -> TokenReader:
        """For one answer."""
        return TokenReader(self._tokenizer)

    def _thinker(
        self, request: ChatRequest, prompt: Prompt, heard: HeardPrompt, seed: int
    ) -> ThinkerInput:
        defaults = self._config.sampling
        places = [np.arange(p.offset, p.end, dtype=np.int32) for p in prompt.placements]
        return ThinkerInput(
            tokens=prompt.tokens,
            media=np.concatenate(places) if places else np.zeros(0, np.int32),
            positions=prompt.positions,
            identities=_identities(prompt),
            max_tokens=request.max_tokens,
            exports_rows=request.voice is not None and len(heard.sources) > 0,
            sampling=SamplingOptions(
                seed=seed,
                temperature=_or(request.temperature, defaults.settings.temperature),
                top_k=_or(request.top_k, defaults.settings.top_k),
                top_p=_or(request.top_p, defaults.settings.top_p),
                repetition_penalty=_or(request.repetition_penalty, defaults.repetition_penalty),
            ),
        )

    def _talker(self, request: ChatRequest, heard: HeardPrompt, seed: int) -> TalkerInput:
        speech, voice = self._config.speech, request.voice or ""
        if speech is None or voice not in speech.talker.speakers:
            raise InvalidRequest(f"this checkpoint has no voice {voice!r}", "audio.voice")
        return TalkerInput(
            user=heard.tokens,
            media=heard.media,
            sources=heard.sources,
            positions=heard.positions,
            role=self._prompts.role,
            speaker=speech.talker.speakers[voice],
            max_frames=None,
            sampling=speech_sampling(speech.sampling, seed, greedy=request.temperature == 0),
        )


class TokenReader:
    """Implements `contract.model.conversation.TextReader`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, less what may be part of an unfinished character."""
        pieces = (self._stream.step(self._tokenizer, token) for token in tokens.tolist())
        return "".join(piece for piece in pieces if piece is not None)

    def end(self) -> str:
        """Nothing: what is unfinished is no character."""
        return ""


def _message(message: chat.Message) -> Message:
    return Message(Role(message.role.value), tuple(_part(part) for part in message.parts))


def _part(part: chat.Part) -> Part:
    match part:
        case chat.TextPart(text):
            return Text(text)
        case chat.ImagePart(pixels):
            return Picture(pixels)
        case chat.VideoPart(frames, frames_per_s):
            return Video(frames, frames_per_s)
        case chat.AudioPart(samples, sample_rate):
            mono = samples.mean(axis=1)
            if sample_rate != RATE:
                mono = soxr.resample(mono, sample_rate, RATE)
            return Sound(np.ascontiguousarray(mono, np.float32))


def _identities(prompt: Prompt) -> NDArray[np.int32]:
    """[P]: the tokens; in the place of media, 31 bits of a stream that their content seeds."""
    identities = prompt.tokens.copy()
    for placement in prompt.placements:
        stream = hashlib.shake_256(placement.media.identity).digest(4 * placement.length)
        numbers = np.frombuffer(stream, np.uint32) >> 1
        identities[placement.offset : placement.end] = numbers.astype(np.int32)
    return identities


def _voices(speech: SpeechConfig | None) -> tuple[Voice, ...]:
    speakers: Mapping[str, int] = {} if speech is None else speech.talker.speakers
    return tuple(Voice(name, name.title()) for name in speakers)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
