"""A decoder run in windows, over one whose samples can be written down by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Pcm
from cantata.stages.codec import build_stage
from cantata.stages.codec.windowed import WindowedDecoder
from stage_chunks import codes_chunk
from tiny_talker.checkpoint import CODEBOOK_SIZE, NUM_CODEBOOKS
from tiny_talker.decoder import RunningSumDecoder, decode_all
from tiny_talker.plugin import PIPELINE

SAMPLES = RunningSumDecoder.samples_per_frame


def frames(count: int, seed: int = 0) -> np.ndarray:
    size = (count, NUM_CODEBOOKS)
    return np.random.default_rng(seed).integers(0, CODEBOOK_SIZE, size, dtype=np.int32)


def expected(codes: np.ndarray, chunk: int, context: int) -> np.ndarray:
    """Each window decoded as a whole of its own, its context cut off."""
    parts = []
    for start in range(0, len(codes), chunk):
        before = min(start, context)
        parts.append(decode_all(codes[start - before : start + chunk])[before * SAMPLES :])
    return np.concatenate(parts)


@pytest.mark.parametrize(("chunk", "context"), [(4, 4), (4, 0), (3, 7), (5, 2), (100, 4)])
@pytest.mark.parametrize("arrival", [(1,) * 14, (14,), (3, 1, 6, 4)])
def test_windows_do_not_depend_on_how_frames_arrive(
    chunk: int, context: int, arrival: tuple[int, ...]
) -> None:
    decoder, codes = WindowedDecoder(RunningSumDecoder(), chunk, context), frames(14)
    state, slot = decoder.init_state(3), torch.tensor([1])
    decoder.reset(state, slot)
    rows = torch.from_numpy(codes).long()[None]
    parts = [decoder.decode(state, slot, part) for part in rows.split(list(arrival), dim=1)]  # type: ignore[no-untyped-call]
    assert [part.shape[1] for part in parts] == [n * SAMPLES for n in arrival]
    np.testing.assert_array_equal(torch.cat(parts, dim=1)[0], expected(codes, chunk, context))


def test_streams_at_different_places_are_decoded_together() -> None:
    decoder = WindowedDecoder(RunningSumDecoder(), 3, 4)
    state = decoder.init_state(4)
    decoder.reset(state, torch.arange(4))
    streams = [frames(20, seed) for seed in range(4)]
    made: list[list[np.ndarray]] = [[], [], [], []]
    taken = [0, 0, 0, 0]
    # Each joins later than the one before: the windows of a batch begin at different frames.
    for slots in ([0], [1, 0], [3, 0, 1], [2, 3, 1, 0], [0, 1, 2, 3]):
        part = [streams[s][taken[s] : taken[s] + 2] for s in slots]
        codes = torch.from_numpy(np.stack(part)).long()
        for slot, samples in zip(
            slots, decoder.decode(state, torch.tensor(slots), codes), strict=True
        ):
            made[slot].append(samples.numpy())
            taken[slot] += 2
    for stream, parts, count in zip(streams, made, taken, strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), expected(stream[:count], 3, 4))


def test_a_reset_slot_starts_without_context() -> None:
    decoder, codes = WindowedDecoder(RunningSumDecoder(), 2, 5), frames(3)
    state, slot = decoder.init_state(2), torch.tensor([0])
    decoder.reset(state, torch.arange(2))
    rows = torch.from_numpy(codes).long()[None]
    first = decoder.decode(state, slot, rows)
    decoder.decode(state, slot, rows)
    decoder.reset(state, slot)
    assert torch.equal(decoder.decode(state, slot, rows), first)


def test_a_deployment_chooses_the_windows() -> None:
    settings = {"slots": 2, "window": {"chunk_frames": 3, "context_frames": 1}}
    deployment = CodecDeployment.model_validate(settings)
    stage = build_stage(PIPELINE.stage("decoder"), Path(), deployment)
    codes = frames(7)
    stage.add("r", None, batch=False)
    stage.receive([codes_chunk("r", 0, codes, True)])
    samples = []
    while stage.has_work():
        samples += [c.payload.samples for c in stage.step().chunks if isinstance(c.payload, Pcm)]
    np.testing.assert_array_equal(np.concatenate(samples), expected(codes, 3, 1))
