"""The speech tokenizer's decoder gives the same samples from recorded steps (on a CPU, calls)."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.random_checkpoint import TINY_LARGE, write_checkpoint
from recorded_codec import check_same
from threads import threads


def test_streams_sound_the_same_from_recorded_steps(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, TINY_LARGE, "custom_voice", 0)
    with threads(1):
        check_same(lambda: Qwen3TtsDecoder(checkpoint, torch.device("cpu")))
