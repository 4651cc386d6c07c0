"""Drives a codec stage whose steps are recorded, beside one that calls its decoder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Pcm
from cantata.contract.model.codec import StreamingDecoder
from cantata.stages.codec.stage import CodecStage
from stage_chunks import codes_chunk

DEPLOYMENT = CodecDeployment(slots=5, max_chunk_frames=4, max_batch_frames=12, credit_s=100.0)
Sound = dict[str, list[NDArray[np.float32]]]


def both(load: Callable[[], StreamingDecoder], seed: int) -> tuple[Sound, Sound]:
    """The sound of the same streams from steps that are called, and from recorded ones.

    Eleven streams of several lengths share five slots. They join, are aborted, and get their frames
    in pieces, so that rows are padded and slots used again.
    """
    plain = CodecStage(load(), DEPLOYMENT, clock=lambda: 0.0)
    recorded = CodecStage(load(), DEPLOYMENT, clock=lambda: 0.0, is_recorded=True)
    return _sound(plain, seed), _sound(recorded, seed)


def _sound(stage: CodecStage, seed: int) -> Sound:
    rng = np.random.default_rng(seed)
    decoder = stage._decoder
    lengths = {f"stream {index}": int(rng.integers(3, 12)) for index in range(11)}
    shape = decoder.codebook_size, (max(lengths.values()), decoder.num_codebooks)
    codes = {name: rng.integers(0, *shape, dtype=np.int32) for name in lengths}
    waiting, sent, chunks = list(lengths), dict[str, int](), dict[str, int]()
    sound: Sound = {name: [] for name in lengths}
    while waiting or sent:
        while waiting and len(sent) < DEPLOYMENT.slots:
            name = waiting.pop(0)
            stage.add(name, None, batch=False)
            sent[name] = chunks[name] = 0
        for name in [name for name in sent if rng.random() < 0.7]:
            end = min(sent[name] + int(rng.integers(1, 6)), lengths[name])
            final = end == lengths[name]
            piece = codes[name][sent[name] : end]
            stage.receive([codes_chunk(name, chunks[name], piece, final)])
            sent[name], chunks[name] = end, chunks[name] + 1
            if final:
                del sent[name]
        while stage.has_work():
            result = stage.step()
            assert not result.failures
            for chunk in result.chunks:
                assert isinstance(chunk.payload, Pcm)
                sound[chunk.request_id].append(chunk.payload.samples)
        if sent and rng.random() < 0.2:
            aborted = sorted(sent)[0]
            stage.abort(aborted)
            del sent[aborted]
    assert set(stage.get_counts().values()) == {0}
    return sound


def check_same(load: Callable[[], StreamingDecoder], seeds: int = 2) -> None:
    """The chunks of every stream are equal, bit for bit."""
    for seed in range(seeds):
        plain, recorded = both(load, seed)
        assert plain.keys() == recorded.keys()
        for name, expected in plain.items():
            assert len(expected) == len(recorded[name])
            for one, other in zip(expected, recorded[name], strict=True):
                np.testing.assert_array_equal(one, other)
