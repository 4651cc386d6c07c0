"""Turns windows of sound into the stages' inputs, and what the thinker writes into transcripts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.chunks import Codes, Payload, to_array
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, StageInput
from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    TokenLogprob,
    Transcript,
    TranscriptionRequest,
    TranscriptUpdate,
)
from cantata.contract.model.pipeline import TRANSCRIPT
from cantata.contract.model.recognizer import Sound, TranscriptReader
from cantata_layers.omni.inputs import ThinkerInput, identify_rows
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_layers.token_text import get_token_bytes
from cantata_models.qwen3_asr.config import (
    ALIGNER_FOLDER,
    LANGUAGES,
    find_name,
    find_special_tokens,
    load_config,
)
from cantata_models.qwen3_asr.encoder import FeatureExtractor
from cantata_models.qwen3_asr.plugin import ALIGNER, ENCODER, THINKER
from cantata_models.qwen3_asr.prompt import ASR_TEXT, AlignerInput, TranscriptionPrompts

_REPEATED_CHARACTER = re.compile(r"(.)\1{20,}", re.DOTALL)
_REPEATED_PHRASE = re.compile(r"(?=.{40})(.{1,20}?)\1{19,}", re.DOTALL)
"""WHY only where 40 characters are left: so do the references, whose texts these are to equal."""
_NAMED = re.compile(r"^\s*language +(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WrittenSpeech:
    """What an answer says."""

    text: str
    """Without spaces around it."""
    language: str
    """BCP 47 tag; empty: unknown."""


def parse_answer(answer: str) -> WrittenSpeech:
    """Tell the text from the language in front of it, which is absent if the prompt named one."""
    whole = shorten_loops(answer.strip())
    before, mark, text = whole.partition(ASR_TEXT)
    if not mark:
        return WrittenSpeech(whole, "")
    named = _NAMED.search(before)
    name = named[1].capitalize() if named else ""
    return WrittenSpeech(text.strip(), LANGUAGES.get(name, ""))


def list_logprobs(
    tokenizer: Tokenizer, tokens: Sequence[int], logprobs: Sequence[float]
) -> tuple[TokenLogprob, ...]:
    """The tokens of an answer's text, those after the mark behind the language.

    Args:
        tokens: [T] of the answer.
        logprobs: [T], or none, if they were not asked for.
    """
    mark = tokenizer.token_to_id(ASR_TEXT)
    first = tokens.index(mark) + 1 if mark in tokens else 0
    special = {n for n, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return tuple(
        TokenLogprob(tokenizer.decode([token]), tuple(get_token_bytes(tokenizer, token)), logprob)
        for token, logprob in zip(tokens[first:], logprobs[first:], strict=bool(logprobs))
        if token not in special
    )


def shorten_loops(text: str) -> str:
    """Leave one of a character that comes more than 20 times in a row, and one of a phrase of up to
    20 characters that comes 20 times or more: there the thinker has lost the thread."""
    return _REPEATED_PHRASE.sub(r"\1", _REPEATED_CHARACTER.sub(r"\1", text))


MAX_TOKENS = 1024
"""Of a transcript: more than anybody says in the longest window."""


class Qwen3AsrBuilder:
    """Implements `contract.model.recognizer.TranscriptionBuilder`.

    Raises:
        ConfigError: a file is missing, or a value is wrong or not served.
    """

    translates = False
    stage = None

    def __init__(self, checkpoint: Path) -> None:
        config = load_config(checkpoint)
        self.has_timestamps = (checkpoint / ALIGNER_FOLDER).is_dir()
        self.output = f"{ALIGNER}.{TRANSCRIPT}" if self.has_timestamps else f"{THINKER}.codes"
        self._names = frozenset(config.languages)
        self.languages = tuple(LANGUAGES[name] for name in config.languages)
        self.max_window_s = config.longest_s
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        ids = find_special_tokens(self._tokenizer, config)
        self._prompts = TranscriptionPrompts(self._tokenizer, ids)
        self._extractor = FeatureExtractor(config)

    @property
    def warm_up(self) -> Sound:
        """A second of quiet noise."""
        noise = np.random.default_rng(0).normal(0, 0.01, SPEECH_RATE)
        return noise.astype(np.float32)

    def build(
        self, request_id: str, request: TranscriptionRequest, sound: Sound | None
    ) -> PipelineRequest:
        """Return the inputs of encoder, thinker and, if there is one, aligner.

        Raises:
            InvalidRequest: the language is unknown, the prompt is too long, or a translation is
                asked for.
            InvalidAudio: the sound is too long, or not finite.
        """
        assert sound is not None, "without a recognition stage, windows come whole"
        if request.translate:
            raise InvalidRequest("this model writes what it hears; it does not translate", "task")
        features = self._extractor.extract(sound)
        language = None if request.language is None else self._find(request.language)
        prompt = self._prompts.build(features.rows, request.prompt, language)
        identities = identify_rows(prompt.tokens, [(features, prompt.sound)])
        thinker = ThinkerInput(
            tokens=prompt.tokens,
            media=prompt.sound,
            positions=None,
            identities=identities,
            max_tokens=MAX_TOKENS,
            exports_rows=False,
            sampling=SamplingOptions(
                seed=_derive_seed(identities),
                temperature=request.temperature or 0.0,
                top_k=0,
                top_p=1.0,
                repetition_penalty=1.0,
                logprobs=request.logprobs,
            ),
        )
        inputs: dict[str, StageInput] = {ENCODER: features, THINKER: thinker}
        if self.has_timestamps:
            inputs[ALIGNER] = AlignerInput(
                features=features,
                seconds=len(sound) / SPEECH_RATE,
                language="" if language is None else LANGUAGES[language],
                is_wanted=request.timestamps,
            )
        return PipelineRequest(request_id, inputs)

    def reader(self) -> TranscriptReader:
        return AnswerReader(self._tokenizer)

    def _find(self, tag: str) -> str:
        name = find_name(tag)
        if name not in self._names:
            raise InvalidRequest(
                f"language {tag!r} is unknown; valid: {', '.join(self.languages)}", "language"
            )
        return name


def _derive_seed(identities: NDArray[np.int32]) -> int:
    """63 bits of a prompt with its sound, so that the same request has the same transcript."""
    return int.from_bytes(hashlib.sha256(identities.tobytes()).digest()[:8], "little") >> 1


class AnswerReader:
    """Implements `contract.model.recognizer.TranscriptReader`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        self._aligned: Transcript | None = None

    def read(self, payload: Payload) -> None:
        """Take more tokens, or the transcript that an aligner made."""
        if isinstance(payload, TranscriptUpdate):
            self._aligned = payload.transcript
            return
        assert isinstance(payload, Codes)
        self._tokens += to_array(payload)[:, 0].tolist()
        self._logprobs += payload.logprobs

    def end(self) -> Transcript:
        if self._aligned is not None:
            return self._aligned
        answer = self._tokenizer.decode(self._tokens, skip_special_tokens=True)
        found = parse_answer(answer)
        logprobs = list_logprobs(self._tokenizer, self._tokens, self._logprobs)
        return Transcript(found.text, found.language, logprobs=logprobs)
