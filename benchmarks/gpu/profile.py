"""Where one step's time goes: its kernels, called from Python, by torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.config import load_config
from gpu.predictor import FrameCompletion
from gpu.step import KINDS, LENGTHS, TINY_POSITIONS, TalkerSteps
from gpu.timing import WARM_UPS

BATCH = 8
MAX_KERNELS = 12
"""Rows of one step: the operations that take longest."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One operation of one step."""

    step: str
    operation: str
    calls: int
    device_us: float
    """Of all calls; 0 on a CPU."""
    host_us: float


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[ProfileRow]:
    """A frame of the code predictor, a step of the codec and one of the talker, of 8 requests
    each."""
    complete = FrameCompletion(load_config(checkpoint), device, sampled=True)
    inputs = complete.inputs(BATCH)
    yield from _profiled("predictor", lambda: complete(*inputs), device)
    decoder = Qwen3TtsDecoder(checkpoint, device)
    state, slots = decoder.init_state(BATCH), torch.arange(BATCH, device=device)
    shape = (BATCH, 1, decoder.num_codebooks)
    codes = torch.randint(decoder.codebook_size, shape, device=device)
    yield from _profiled("codec", lambda: decoder.decode(state, slots, codes), device)
    length = TINY_POSITIONS if tiny else LENGTHS[0]
    talker = TalkerSteps(checkpoint, device, BATCH, length)
    step, indices = talker.prepare_decode(KINDS["sampled"], length, BATCH)
    yield from _profiled("talker", lambda: step(indices), device)


@torch.inference_mode()
def _profiled(
    step: str, call: Callable[[], torch.Tensor], device: torch.device
) -> Iterator[ProfileRow]:
    for _ in range(WARM_UPS):
        call()
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
        torch.cuda.synchronize(device)
    with profile(activities=activities) as profiler:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    events = profiler.key_averages()

    def cost(event: object) -> tuple[float, float]:
        on_device = float(getattr(event, "self_device_time_total", 0.0))
        return on_device, float(getattr(event, "self_cpu_time_total", 0.0))

    for event in sorted(events, key=cost, reverse=True)[:MAX_KERNELS]:
        yield ProfileRow(step, event.key, event.count, *cost(event))
