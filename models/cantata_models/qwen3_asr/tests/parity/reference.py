"""Runs and observes transformers' Qwen3-ASR as a user of it does."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Qwen2Tokenizer, Qwen3ASRForConditionalGeneration
from transformers.models.qwen3_asr.feature_extraction_qwen3_asr import Qwen3ASRFeatureExtractor
from transformers.models.qwen3_asr.processing_qwen3_asr import Qwen3ASRProcessor

from cantata_layers.omni.tests.double_precision import DoublePrecision
from cantata_models.qwen3_asr.random_checkpoint import CHAT_TEMPLATE
from cantata_models.qwen3_asr.tests.parity.scenarios import MAX_TOKENS, Qwen3AsrScenario


@dataclass(slots=True)
class Qwen3AsrObserved:
    tokens: NDArray[np.int64]
    """[P]: the prompt."""
    answer: NDArray[np.int64]
    """With the token that ended it."""
    rows: NDArray[np.float64]
    """[M, D]: the sound in the prompt."""
    scores: NDArray[np.float64]
    """[T, V] of each token of the answer: logarithms of probabilities."""
    text: str
    language: str
    """A name, as the reference reads it from the answer; empty: it is not there."""


class Qwen3AsrReference:
    """One checkpoint.

    Args:
        checkpoint: its folder, as transformers saves it.
        dtype: to compute in, float32 or float64.
    """

    def __init__(self, checkpoint: Path, dtype: torch.dtype) -> None:
        self._dtype = dtype
        model: Any = Qwen3ASRForConditionalGeneration.from_pretrained(
            str(checkpoint), dtype=torch.float32, attn_implementation="eager"
        )
        self._model = model.to(dtype)
        extractor: Any = Qwen3ASRFeatureExtractor
        processor: Any = Qwen3ASRProcessor
        self._processor = processor(
            extractor(), Qwen2Tokenizer.from_pretrained(str(checkpoint)), CHAT_TEMPLATE
        )

    @torch.no_grad()
    def answer(self, scenario: Qwen3AsrScenario) -> Qwen3AsrObserved:
        """Write down what a scenario's sound says."""
        made = self._processor.apply_transcription_request(
            scenario.samples, language=scenario.language, prompt=scenario.prompt or None
        )
        made["input_features"] = made["input_features"].to(self._dtype)
        with self._precision():
            encoded = self._model.model.get_audio_features(
                made["input_features"], made["input_features_mask"]
            )
            result = self._model.generate(
                **made,
                max_new_tokens=MAX_TOKENS,
                do_sample=False,
                output_logits=True,
                return_dict_in_generate=True,
            )
        prompt = made["input_ids"][0]
        answer = result.sequences[0, len(prompt) :]
        scores = torch.cat(result.logits).double().log_softmax(dim=-1)
        # The tokenizer's own text: the language is read from it where the prompt names none.
        parsed = self._processor.decode(answer, return_format="parsed")
        return Qwen3AsrObserved(
            prompt.numpy(),
            answer.numpy(),
            encoded.pooler_output.double().numpy(),
            scores.numpy(),
            parsed["transcription"],
            parsed["language"] or "",
        )

    def _precision(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._dtype is torch.float32 else DoublePrecision()
