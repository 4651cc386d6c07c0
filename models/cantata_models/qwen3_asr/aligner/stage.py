"""The aligner stage: what the thinker wrote becomes a transcript, whose words have times if they
are wanted and their language is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes, Payload, to_array
from cantata.contract.data.errors import CantataError
from cantata.contract.data.transcripts import TranscribedWord, Transcript, TranscriptUpdate
from cantata.contract.model.feed_forward import Fed
from cantata.contract.model.pipeline import CODES, TRANSCRIPT
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.aligner.network import AlignerNetwork
from cantata_models.qwen3_asr.aligner.times import mend_times
from cantata_models.qwen3_asr.aligner.words import ALIGNED, split_words
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER
from cantata_models.qwen3_asr.inputs import AlignerInput
from cantata_models.qwen3_asr.transcripts import list_logprobs, parse_answer


class TranscriptAligner:
    """Implements `contract.model.feed_forward.FedFeedForward`.

    Args:
        checkpoint: the folder of the model that writes, with the aligner's in it.
        device: of the network.
    """

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


def load_aligner(checkpoint: Path, device: torch.device) -> TranscriptAligner:
    """Return the aligner of a checkpoint's folder, in fp32.

    Raises:
        ConfigError: a file is missing, or a value or tensor is wrong or not served.
    """
    return TranscriptAligner(checkpoint, device)
