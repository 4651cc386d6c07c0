"""A codec stage whose steps are recorded: on a CPU a replay calls the decoder."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cantata.cli import doctor_model
from cantata.config import CodecDeployment, DecodeWindow
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.stages.codec import build_stage
from cantata.stages.codec import stage as stage_module
from cantata.stages.codec.decoding import can_record
from cantata.stages.codec.stage import CodecStage
from recorded_codec import DEPLOYMENT, both, check_same
from running_sum import RunningSumDecoder

SPARE = DEPLOYMENT.slots


class Recordable(RunningSumDecoder):
    recordable = True

    def __init__(self, fails: bool = False) -> None:
        self.calls: list[tuple[list[int], int]] = []
        self.state = torch.empty(0)
        self._fails = fails

    def init_state(self, slots: int) -> torch.Tensor:
        self.state = super().init_state(slots)
        return self.state

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        if self._fails and set(slots.tolist()) == {SPARE}:
            raise RuntimeError("cannot be captured")
        self.calls.append((slots.tolist(), codes.shape[1]))
        return super().decode(state, slots, codes)


def test_streams_sound_the_same_from_recorded_steps() -> None:
    check_same(Recordable, seeds=20)


def test_every_step_of_the_plan_is_recorded_on_the_spare_slot_alone() -> None:
    decoder = Recordable()
    CodecStage(decoder, DEPLOYMENT, is_recorded=True)
    assert [(len(slots), frames) for slots, frames in decoder.calls] == [
        *((1, 1), (2, 1), (4, 1), (8, 1)),
        *((1, 2), (2, 2), (4, 2), (8, 2)),
        *((1, 4), (2, 4), (4, 4)),
    ]
    assert {slot for slots, _ in decoder.calls for slot in slots} == {SPARE}
    assert decoder.state[:SPARE].isnan().all(), "no slot is touched before it has a stream"


def test_the_plan_asks_for_nothing_else() -> None:
    loaded: list[Recordable] = []

    def load() -> Recordable:
        loaded.append(Recordable())
        return loaded[-1]

    both(load, seed=1)
    plain, recorded = (decoder.calls for decoder in loaded)
    recorded = recorded[11:]  # after those while it loads
    assert len(plain) == len(recorded) > 20
    for (slots, frames), (padded, same) in zip(plain, recorded, strict=True):
        count = len(padded)
        assert (frames, padded) == (same, slots + [SPARE] * (count - len(slots)))
        assert count == 1 << (len(slots) - 1).bit_length()
    assert any(SPARE in padded for padded, _ in recorded)


def test_a_decoder_that_cannot_be_captured_is_called(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_same(lambda: Recordable(fails=True), seeds=1)
    assert len(caplog.records) == 1
    assert "the decoder's step: no CUDA graph of 1 rows" in caplog.text


GPU = CodecDeployment(device="cuda")


@pytest.mark.parametrize(
    ("changed", "recorded"),
    [
        ({}, True),
        ({"device": "cpu"}, False),
        ({"cuda_graphs": False}, False),
        ({"window": DecodeWindow()}, False),
    ],
)
def test_recording_is_for_cuda_and_can_be_turned_off(
    changed: dict[str, object], recorded: bool
) -> None:
    deployment = GPU.model_copy(update=changed)
    assert can_record(Recordable(), deployment) is recorded
    assert not can_record(RunningSumDecoder(), deployment)


class LargeRecordable(Recordable):
    slot_bytes = 10


def load_large(checkpoint: Path, device: torch.device) -> LargeRecordable:
    return LargeRecordable()


def test_the_spare_slot_needs_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = StageSpec("decoder", StageKind.CODEC, f"{__name__}:load_large")
    monkeypatch.setattr("cantata.stages.common.device.free_bytes", lambda device: 50)
    assert build_stage(spec, Path(), CodecDeployment(slots=5)).capacity.state_bytes == 50
    monkeypatch.setattr(stage_module, "count_spare_slots", lambda decoder, deployment: 1)
    with pytest.raises(ConfigError, match=r"5 slots and 1 spare of decoder .* at most 4 slots fit"):
        build_stage(spec, Path(), CodecDeployment(slots=5))
    assert build_stage(spec, Path(), CodecDeployment(slots=4)).capacity.state_bytes == 50


def test_cantata_doctor_counts_the_spare_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = StageSpec("decoder", StageKind.CODEC, f"{__name__}:load_large")
    monkeypatch.setattr(doctor_model, "free_bytes", lambda device: 55)
    plan: Any = SimpleNamespace(located=SimpleNamespace(checkpoint=Path()))
    check = doctor_model._check_decoder(plan, spec, GPU.model_copy(update={"slots": 5}))
    assert (check.failed, check.advice) == (True, "deploy decoder with at most 4 slots")
    assert not doctor_model._check_decoder(plan, spec, GPU.model_copy(update={"slots": 4})).failed
