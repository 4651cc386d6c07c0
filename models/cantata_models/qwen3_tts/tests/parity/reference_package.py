"""Imports and observes the unmodified reference package; needs `requirements/reference.txt`."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.qwen3_tts.tests.parity.recordings import SAMPLE_RATE, recording
from cantata_models.qwen3_tts.tests.parity.scenarios import Qwen3TtsScenario

UNUSED = (
    "torchaudio",
    "torchaudio.compliance",
    "torchaudio.compliance.kaldi",
    "onnxruntime",
    "sox",
)
"""Modules that the reference imports only for its other tokenizer, at 25 Hz. The published
torchaudio needs CUDA's libraries at import. Empty modules replace them, and any use would fail."""


def load_model(
    checkpoint: Path, dtype: torch.dtype = torch.float32, attention: str = "eager"
) -> Any:
    """Load a checkpoint on the CPU, as a user of the reference does.

    Args:
        checkpoint: the checkpoint's folder.
        dtype: dtype of all weights, including the codec's.
        attention: name of an implementation in transformers, whose default is "sdpa".
    """
    # Imported first: transformers checks for these packages at import and must find them missing.
    importlib.import_module("transformers")
    for name in UNUSED:
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules.setdefault(name, module)
    from qwen_tts import Qwen3TTSModel

    return Qwen3TTSModel.from_pretrained(
        str(checkpoint), dtype=dtype, attn_implementation=attention
    )


def speak(model: Any, scenario: Qwen3TtsScenario) -> NDArray[np.float32]:
    """Synthesize a scenario through the reference's own interface; returns samples."""
    options: dict[str, Any] = {
        "text": scenario.text,
        "language": scenario.language,
        "non_streaming_mode": not scenario.streaming_text,
        "max_new_tokens": scenario.max_new_tokens,
        "repetition_penalty": scenario.repetition_penalty,
        "do_sample": False,
        "subtalker_dosample": False,
    }
    if scenario.checkpoint.kind == "custom_voice":
        made = model.generate_custom_voice(
            speaker=scenario.speaker, instruct=scenario.instruct, **options
        )
    elif scenario.checkpoint.kind == "voice_design":
        made = model.generate_voice_design(instruct=scenario.instruct or "", **options)
    else:
        assert scenario.recording_seconds is not None
        made = model.generate_voice_clone(
            ref_audio=(recording(scenario.recording_seconds), SAMPLE_RATE),
            ref_text=scenario.reference_text,
            x_vector_only_mode=scenario.reference_text is None,
            **options,
        )
    samples: NDArray[np.float32] = made[0][0]
    return samples


class Observer:
    """Records the reference networks' inputs and outputs for one utterance."""

    def __init__(self, model: Any) -> None:
        self.rows: NDArray[np.float32] | None = None
        """[L, D]: the prompt's input rows."""
        self.trailing: NDArray[np.float32] | None = None
        """[T, D]: text rows added one per frame."""
        self.codes: NDArray[np.int64] | None = None
        """[T, Q] frames."""
        self.first_scores: list[torch.Tensor] = []
        """[V] per step: scores of code 0 before any processing."""
        self.residual_scores: list[float] = []
        """Scores of every later code that was chosen, frame by frame."""
        self.residual_gap = float("inf")
        """Smallest distance between the best two scores of any later code."""
        talker = model.model.talker
        self._handles = [
            talker.register_forward_pre_hook(self._see_prompt, with_kwargs=True),
            talker.codec_head.register_forward_hook(self._see_first),
        ]
        for head in talker.code_predictor.lm_head:
            self._handles.append(head.register_forward_hook(self._see_residual))
        self._generate = model.model.generate
        self._model = model.model
        model.model.generate = self._see_codes

    def close(self) -> None:
        """Stop observing."""
        for handle in self._handles:
            handle.remove()
        del self._model.generate

    def _see_prompt(self, _module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        rows = kwargs.get("inputs_embeds")
        if rows is not None and rows.shape[1] > 1:
            self.rows = rows[0].numpy().copy()
            self.trailing = kwargs["trailing_text_hidden"][0].numpy().copy()

    def _see_first(self, _module: Any, _args: Any, scores: torch.Tensor) -> None:
        self.first_scores.append(scores[0, -1].clone())

    def _see_residual(self, _module: Any, _args: Any, scores: torch.Tensor) -> None:
        best = torch.topk(scores[0, -1], 2).values
        self.residual_scores.append(float(best[0]))
        self.residual_gap = min(self.residual_gap, float(best[0] - best[1]))

    def _see_codes(self, *args: Any, **kwargs: Any) -> Any:
        result = self._generate(*args, **kwargs)
        self.codes = result[0][0].numpy().copy()
        return result


class QuantizerGap:
    """Smallest margin between the nearest and the next codebook entry over one encoding."""

    def __init__(self, model: Any) -> None:
        self.smallest = float("inf")
        tokenizer = model.model.speech_tokenizer.model
        quantizer = tokenizer.encoder.quantizer
        semantic = quantizer.semantic_residual_vector_quantizer.layers
        acoustic = quantizer.acoustic_residual_vector_quantizer.layers
        used = tokenizer.encoder_valid_num_quantizers
        self._books = [layer.codebook for layer in [*semantic, *acoustic]][:used]
        for book in self._books:
            book.quantize = self._watch(book)

    def close(self) -> None:
        """Stop observing."""
        for book in self._books:
            del book.quantize

    def _watch(self, book: Any) -> Any:
        quantize = book.quantize

        def watched(hidden: torch.Tensor) -> Any:
            nearest = torch.cdist(hidden, book.embed).topk(2, largest=False).values
            self.smallest = min(self.smallest, float((nearest[:, 1] - nearest[:, 0]).min()))
            return quantize(hidden)

        return watched
