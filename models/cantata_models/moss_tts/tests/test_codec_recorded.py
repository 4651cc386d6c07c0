"""The tokenizers' decoders give the same samples from recorded steps (on a CPU, calls)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cantata_models.moss_tts.codec import AudioDecoder
from cantata_models.moss_tts.random_checkpoint_codec import (
    TINY_LOCAL,
    TINY_NANO,
    MossCodecShape,
    write_codec,
)
from recorded_codec import check_same
from threads import threads


@pytest.mark.parametrize("shape", [TINY_LOCAL, TINY_NANO], ids=["local", "nano"])
def test_streams_sound_the_same_from_recorded_steps(shape: MossCodecShape, tmp_path: Path) -> None:
    write_codec(tmp_path, shape, 0)
    with threads(1):
        check_same(lambda: AudioDecoder(tmp_path, shape.codebooks, torch.device("cpu")))
