"""The aligner stage: what the thinker wrote becomes a transcript, whose words have times if they
are wanted and their language is known.

The network is transformers' own, with a checkpoint's weights. It takes words of letters and digits
alone, and gives times in no order, which are mended.

Letters: P tokens of a prompt, M of them of the sound, C classes of time, N times.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from transformers.models.qwen3_asr.configuration_qwen3_asr import Qwen3ASRConfig
from transformers.models.qwen3_asr.modeling_qwen3_asr import Qwen3ASRForTokenClassification

from cantata.contract.data.chunks import Codes, Payload, to_array
from cantata.contract.data.errors import CantataError, ConfigError
from cantata.contract.data.transcripts import TranscribedWord, Transcript, TranscriptUpdate
from cantata.contract.model.feed_forward import Fed
from cantata.contract.model.pipeline import CODES, TRANSCRIPT
from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import read_json
from cantata_layers.omni.encoder import fill_network
from cantata_layers.omni.inputs import WINDOW_FRAMES, SoundFeatures
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.config import (
    ALIGNER_FOLDER,
    PUBLISHED,
    SAVED_AGAIN,
    Qwen3AsrConfig,
    find_token,
    load_config,
)
from cantata_models.qwen3_asr.prompt import AlignerInput
from cantata_models.qwen3_asr.transcription_builder import list_logprobs, parse_answer

ALIGNED = frozenset({"zh", "en", "yue", "fr", "de", "it", "pt", "ru", "es"})
"""Languages that the aligner knows. It knows Japanese and Korean too, by the words of programs that
are not here."""
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""First and last code points; each such character is a word."""


@dataclass(frozen=True, slots=True)
class SpokenUnit:
    spoken: str
    """As the aligner takes it: letters, digits and apostrophes."""
    written: str
    """As the transcript has it, with its punctuation, without spaces around it."""


def split_words(text: str) -> list[SpokenUnit]:
    """Split at spaces and around ideographs."""
    spans: list[tuple[str, int, int]] = []
    letters, start, end = "", 0, 0
    for place, character in enumerate(text):
        alone = _is_ideograph(character)
        if letters and (alone or character.isspace()):
            spans.append((letters, start, end))
            letters = ""
        if alone:
            spans.append((character, place, place + 1))
        elif _is_spoken(character):
            start = start if letters else place
            letters, end = letters + character, place + 1
    if letters:
        spans.append((letters, start, end))
    return _attach_punctuation(text, spans)


def _attach_punctuation(text: str, spans: list[tuple[str, int, int]]) -> list[SpokenUnit]:
    """What stands between two words belongs to the first of them, but for what touches the
    second."""
    cuts = [0]
    for (_, _, end), (_, start, _) in pairwise(spans):
        between = text[end:start]
        spaces = [place for place, character in enumerate(between) if character.isspace()]
        cuts.append(end + spaces[-1] + 1 if spaces else start)
    cuts.append(len(text))
    return [
        SpokenUnit(spoken, text[cut:following].strip())
        for (spoken, _, _), (cut, following) in zip(spans, pairwise(cuts), strict=False)
    ]


def _is_spoken(character: str) -> bool:
    return character == "'" or unicodedata.category(character)[0] in "LN"


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


SNAPPED = 2
"""Times in a row that are moved to a neighbour; more than these are spread out between both."""


def mend_times(times: Sequence[float]) -> list[int]:
    """[N] -> [N], none before the one in front of it.

    The longest series that never falls is kept, the first such; whatever is between its members is
    moved.
    """
    kept = _find_longest_rise(times)
    mended = list(times)
    for last, following in zip([-1, *kept], [*kept, len(times)], strict=True):
        count = following - last - 1
        before = mended[last] if last >= 0 else None
        after = times[following] if following < len(times) else None
        for number in range(1, count + 1):
            mended[last + number] = _interpolate(before, after, number, count)
    return [int(time) for time in mended]


def _interpolate(before: float | None, after: float | None, number: int, count: int) -> float:
    """The time of the `number`th of `count` between two that are kept."""
    if before is None or after is None:
        found = after if before is None else before
        assert found is not None, "at least one time is kept"
        return found
    if count <= SNAPPED:
        return before if number <= count + 1 - number else after
    return before + (after - before) / (count + 1) * number


def _find_longest_rise(times: Sequence[float]) -> list[int]:
    """Places of the longest series that never falls; of several, the one that ends first, each of
    its members behind the first that it can follow."""
    lengths, previous = [1] * len(times), [-1] * len(times)
    for place, time in enumerate(times):
        for earlier in range(place):
            if times[earlier] <= time and lengths[earlier] + 1 > lengths[place]:
                lengths[place], previous[place] = lengths[earlier] + 1, earlier
    place = lengths.index(max(lengths)) if lengths else -1
    kept = []
    while place >= 0:
        kept.append(place)
        place = previous[place]
    return kept[::-1]


STEP_MS = 80.0
"""Milliseconds of a class of time, unless a checkpoint says otherwise."""
HEAD = "score."
"""How transformers' tensors of the head begin."""


@dataclass(frozen=True, slots=True)
class TimedMarks:
    """What the aligner says of a transcript's marks: two for each word, its start and its end."""

    milliseconds: NDArray[np.float64]
    """[2 * words]"""
    probabilities: NDArray[np.float64]
    """[2 * words]: of these times."""


class AlignerNetwork:
    """A forced aligner.

    Args:
        device: of the network, in float32.

    Raises:
        ConfigError: a file is missing, or a value or tensor is wrong or not served.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        config = load_config(checkpoint, aligns=True)
        fields = read_json(checkpoint / "config.json")
        self._device = device
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self._step_ms = fields.get("timestamp_segment_time", float, STEP_MS)
        self._audio_start, self._audio_end, self._audio_pad, self._timestamp = (
            find_token(self._tokenizer, token)
            for token in ("<|audio_start|>", "<|audio_end|>", "<|audio_pad|>", "<timestamp>")
        )
        named = fields.get("timestamp_token_id", int)
        if (named, config.audio_pad) != (self._timestamp, self._audio_pad):
            raise ConfigError(
                f"{fields.where}: timestamp_token_id {named} or audio_token_id {config.audio_pad} "
                "is not the tokenizer's"
            )
        tensors = {_rename_tensor(name): tensor for name, tensor in read_tensors(checkpoint)}
        self._network = fill_network(
            _make_network(config, tensors.get(f"{HEAD}weight")),
            tensors,
            f"{checkpoint}: the aligner's weights",
            device,
        )

    def align(self, sound: SoundFeatures, words: Sequence[str]) -> TimedMarks:
        """Say when words, at least one, were spoken. `words`: letters and digits alone, in
        order."""
        tokens = self.prompt(sound.rows, words)
        mels = torch.from_numpy(sound.mels)
        frames = mels.shape[1]
        whole = functional.pad(mels, (0, -frames % WINDOW_FRAMES))[None]
        is_own = torch.arange(whole.shape[2])[None] < frames
        scores = self._network(
            input_ids=tokens[None].to(self._device),
            input_features=whole.to(self._device),
            input_features_mask=is_own.long().to(self._device),
            use_cache=False,
        ).logits[0, tokens == self._timestamp]
        best = scores.softmax(dim=-1).max(dim=-1)
        return TimedMarks(
            best.indices.double().cpu().numpy() * self._step_ms,
            best.values.double().cpu().numpy(),
        )

    def prompt(self, rows: int, words: Sequence[str]) -> torch.Tensor:
        """[P] int64: the sound, and two marks behind each word."""
        tokens = [self._audio_start, *[self._audio_pad] * rows, self._audio_end]
        for word in words:
            tokens += self._tokenizer.encode(word, add_special_tokens=False).ids
            tokens += [self._timestamp] * 2
        return torch.tensor(tokens)


def _make_network(config: Qwen3AsrConfig, head: torch.Tensor | None) -> Any:
    if head is None or head.ndim != 2:
        raise ConfigError("the aligner's head is missing")
    stack = config.stack
    make: Any = Qwen3ASRConfig
    sizes = make(
        audio_config={"model_type": "qwen3_asr_encoder", **config.encoder},
        text_config={
            "model_type": "qwen3",
            "head_dim": stack.head_dim,
            "hidden_size": stack.hidden_size,
            "intermediate_size": stack.intermediate_size,
            "max_position_embeddings": stack.max_positions,
            "num_attention_heads": stack.heads,
            "num_hidden_layers": stack.layers,
            "num_key_value_heads": stack.kv_heads,
            "rms_norm_eps": stack.rms_norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": stack.rope_theta},
            "vocab_size": stack.vocab_size,
        },
        audio_token_id=config.audio_pad,
        num_labels=len(head),
    )
    network: Any = Qwen3ASRForTokenClassification
    return network._from_config(sizes, attn_implementation="sdpa")


def _rename_tensor(name: str) -> str:
    """A tensor's name in transformers' network; other names stay as they are."""
    theirs = (*PUBLISHED.projector, PUBLISHED.encoder, PUBLISHED.network, PUBLISHED.head)
    ours = (*SAVED_AGAIN.projector, SAVED_AGAIN.encoder, SAVED_AGAIN.network, HEAD)
    for begin, own in zip(theirs, ours, strict=True):
        if name.startswith(begin):
            return own + name.removeprefix(begin)
    return name


class TranscriptAligner:
    """Implements `contract.model.feed_forward.FedFeedForward`. `checkpoint`: the folder of the
    model that writes, with the aligner's in it."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self._network = AlignerNetwork(checkpoint / ALIGNER_FOLDER, device)

    def awaits(self, inputs: AlignerInput) -> Collection[str]:
        """All that the thinker writes."""
        return (CODES,)

    def key(self, inputs: Fed) -> bytes | None:
        """None: hardly ever are two transcripts equal."""
        return None

    def run(self, batch: Sequence[Fed]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Align transcripts one after the other, so that none depends on its company."""
        return [{TRANSCRIPT: self._transcribe(fed)} for fed in batch]

    def _transcribe(self, fed: Fed) -> TranscriptUpdate:
        inputs: AlignerInput = fed.inputs
        written = fed.arrived[CODES]
        assert isinstance(written, Codes)
        tokens: NDArray[np.int32] = to_array(written)[:, 0].astype(np.int32)
        said = parse_answer(self._tokenizer.decode(tokens.tolist(), skip_special_tokens=True))
        logprobs = list_logprobs(self._tokenizer, tokens.tolist(), written.logprobs)
        language = inputs.language or said.language
        is_aligned = inputs.is_wanted and language in ALIGNED
        words = self._align(inputs, said.text) if is_aligned else ()
        return TranscriptUpdate(
            tokens,
            Transcript(said.text, language, words, logprobs, seconds=inputs.seconds),
        )

    def _align(self, inputs: AlignerInput, text: str) -> tuple[TranscribedWord, ...]:
        units = split_words(text)
        if not units:
            return ()
        marks = self._network.align(inputs.features, [unit.spoken for unit in units])
        times = [min(t / 1000, inputs.seconds) for t in mend_times(marks.milliseconds.tolist())]
        sure = marks.probabilities.reshape(-1, 2).mean(axis=1).tolist()
        return tuple(
            TranscribedWord(unit.written, times[2 * n], times[2 * n + 1], sure[n])
            for n, unit in enumerate(units)
        )
