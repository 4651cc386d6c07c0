"""solo's decoder with the faults that a streaming server has when it mixes up deltas and sums.

The file that `CANTATA_TEST_FAULT` names holds the next utterance's fault, or nothing. One utterance
at a time.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from cantata.contract.model.codec import StreamingDecoder
from cantata_models.solo.checkpoint import load_decoder as load_sound_decoder

FAULT_VARIABLE = "CANTATA_TEST_FAULT"
FAULTY_CHUNK = 2


class Fault(StrEnum):
    REPLAY = "replay"
    """One chunk is sent twice."""
    SKIP = "skip"
    """One chunk is never sent."""
    CUMULATE = "cumulate"
    """Each chunk has everything that came before it too."""


class FaultyDecoder(StreamingDecoder):
    """A decoder around a sound one."""

    def __init__(self, decoder: Any, fault_file: Path) -> None:
        self._decoder = decoder
        self._fault_file = fault_file
        self._fault = ""
        self._sent: list[torch.Tensor] = []

    # What the base class has no default for.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    @property
    def leading_silence(self) -> int:
        return int(self._decoder.leading_silence)

    @property
    def slot_bytes(self) -> int:
        return int(self._decoder.slot_bytes)

    def init_state(self, slots: int) -> Any:
        return self._decoder.init_state(slots)

    def condition(self, state: Any, slot: int, inputs: Any) -> None:
        self._decoder.condition(state, slot, inputs)

    def reset(self, state: Any, slots: torch.Tensor) -> None:
        self._decoder.reset(state, slots)
        self._fault = self._fault_file.read_text(encoding="utf-8")
        self._sent = []

    def decode(self, state: Any, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        samples: torch.Tensor = self._decoder.decode(state, slots, codes)
        if not self._fault:
            return samples
        self._sent.append(samples)
        faulty = len(self._sent) == FAULTY_CHUNK
        match Fault(self._fault):
            case Fault.REPLAY if faulty:
                return torch.cat(self._sent[-2:], dim=1)
            case Fault.SKIP if faulty:
                return samples[:, :0]
            case Fault.CUMULATE:
                return torch.cat(self._sent, dim=1)
        return samples


def load_decoder(checkpoint: Path, device: torch.device) -> FaultyDecoder:
    """The factory that the pipeline names."""
    fault_file = Path(os.environ[FAULT_VARIABLE])
    return FaultyDecoder(load_sound_decoder(checkpoint, device), fault_file)
