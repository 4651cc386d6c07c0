"""A decoder's state must fit into memory before it is allocated."""

from pathlib import Path
from typing import ClassVar

import pytest
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.codec import build_stage
from cantata.stages.common.device import free_bytes
from tiny_talker.decoder import RunningSumDecoder

CPU = torch.device("cpu")


class LargeDecoder(RunningSumDecoder):
    """Says that it needs more than there is, and never gets so far."""

    slot_bytes: ClassVar[int] = 0

    def init_state(self, slots: int) -> torch.Tensor:
        assert self.slot_bytes * slots < free_bytes(CPU)
        return super().init_state(slots)


def load(checkpoint: Path, device: torch.device) -> LargeDecoder:
    return LargeDecoder()


SPEC = StageSpec("decoder", StageKind.CODEC, f"{__name__}:load")


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LargeDecoder, "slot_bytes", free_bytes(CPU) // 3)
    with pytest.raises(ConfigError, match=r"stage 'decoder': 8 slots .* at most [23] slots fit"):
        build_stage(SPEC, Path(), CodecDeployment(slots=8))


def test_what_fits_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LargeDecoder, "slot_bytes", 1 << 20)
    stage = build_stage(SPEC, Path(), CodecDeployment(slots=8))
    assert stage.capacity.state_bytes == 8 << 20
