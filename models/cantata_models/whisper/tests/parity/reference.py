"""Greedy decoding and the alignment of words as published, over transformers' networks.

Letters: T tokens, F mel frames, R rows of the encoder (F / 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.model.recognizer import Sound

_MEDIAN = 7
"""Rows over which attention is smoothed."""


class ReferenceWhisper:
    """One checkpoint.

    Args:
        folder: in Hugging Face's form.
    """

    def __init__(self, folder: Path) -> None:
        self._extract = WhisperFeatureExtractor.from_pretrained(folder)
        self._model: Any = WhisperForConditionalGeneration.from_pretrained(
            folder, attn_implementation="eager"
        )
        self._settings: Any = self._model.generation_config

    @torch.inference_mode()
    def encode(self, sound: Sound) -> Any:
        """The encoder's output for a sound, padded to 30 s."""
        mels = self._extract(sound, sampling_rate=SPEECH_RATE, return_tensors="pt").input_features
        return self._model.model.encoder(mels)

    @torch.inference_mode()
    def decode(self, encoded: Any, prompt: Sequence[int], max_tokens: int) -> list[int]:
        """Greedy tokens after the prompt, without marks."""
        tokens = list(prompt)
        forbidden = list(self._settings.suppress_tokens)
        while len(tokens) - len(prompt) < max_tokens:
            logits = self._run(encoded, tokens).logits[0, -1]
            is_first = len(tokens) == len(prompt)
            first = list(self._settings.begin_suppress_tokens) if is_first else []
            logits[[*forbidden, *first]] = -torch.inf
            tokens.append(int(logits.argmax()))
            if tokens[-1] == self._settings.eos_token_id:
                break
        return [token for token in tokens[len(prompt) :] if token < self._settings.eos_token_id]

    @torch.inference_mode()
    def detect_language(self, encoded: Any) -> str:
        """The likeliest mark of a language."""
        start = self._settings.decoder_start_token_id
        logits = self._run(encoded, [start]).logits[0, -1]
        marks: dict[str, int] = self._settings.lang_to_id
        return max(marks, key=lambda mark: float(logits[marks[mark]]))

    @torch.inference_mode()
    def align(self, encoded: Any, start: Sequence[int], text: Sequence[int]) -> list[int]:
        """[T] the row at which each token of a text begins."""
        tokens = [*start, *text, self._settings.eos_token_id]
        attention = self._run(encoded, tokens, output_attentions=True).cross_attentions
        heads = [attention[layer][0, head] for layer, head in self._settings.alignment_heads]
        weights = torch.stack(heads)
        spread, mean = torch.std_mean(weights, dim=-2, keepdim=True, unbiased=False)
        smooth = _filter_medians((weights - mean) / spread).mean(dim=0)
        # The mark of plain text predicts the first token of it.
        path = _find_path(-smooth[len(start) - 1 : -1].double().numpy())
        rows: dict[int, int] = {}
        for token, row in path:
            rows.setdefault(token, row)
        return [rows[number] for number in range(len(text))]

    def _run(self, encoded: Any, tokens: Sequence[int], **options: bool) -> Any:
        return self._model(
            encoder_outputs=encoded, decoder_input_ids=torch.tensor([tokens]), **options
        )


def _filter_medians(weights: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(weights, (_MEDIAN // 2, _MEDIAN // 2), mode="reflect")
    return padded.unfold(-1, _MEDIAN, 1).sort(dim=-1)[0][..., _MEDIAN // 2]


def _find_path(costs: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Dynamic time warping: (token, row) along the cheapest path, both from 0 to their ends."""
    tokens, rows = costs.shape
    values = costs.tolist()  # whose items Python reads much faster
    best = [[0.0] + [float("inf")] * rows]
    steps = []
    for token in range(tokens):
        above, line, taken = best[-1], [float("inf")], []
        for row in range(rows):
            ways = (above[row], above[row + 1], line[row])
            step = _pick(ways)
            taken.append(step)
            line.append(values[token][row] + ways[step])
        best.append(line)
        steps.append(taken)
    token, row, path = tokens - 1, rows - 1, []
    while token >= 0 and row >= 0:
        path.append((token, row))
        step = steps[token][row]
        token, row = token - (step != 2), row - (step != 1)
    return path[::-1]


def _pick(ways: tuple[float, float, float]) -> int:
    """As published: on a tie, the row goes on."""
    diagonal, up, left = ways
    if diagonal < up and diagonal < left:
        return 0
    return 1 if up < diagonal and up < left else 2
