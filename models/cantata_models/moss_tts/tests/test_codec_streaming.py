"""The decoder's streaming contract, past the wrap of every window."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import torch

from cantata_models.moss_tts.codec import AudioDecoder, slot_bytes
from cantata_models.moss_tts.codec_layers import Arrival, StreamState, row_by_row, together
from cantata_models.moss_tts.random_checkpoint_codec import (
    LOCAL,
    NANO,
    MossCodecShape,
    write_config,
)
from cantata_models.moss_tts.tests import codec_checks
from cantata_models.moss_tts.tests.codec_checks import cut, decode
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, Case
from cantata_models.moss_tts.tokenizer_config import MossTransformerConfig, load_tokenizer_config
from threads import threads

FRAMES = 24
"""Of a stream: more than three times the longest window."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield codec_checks.write_checkpoints(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def decoder(request: pytest.FixtureRequest, checkpoints: Path) -> AudioDecoder:
    case: Case = request.param
    loaded: AudioDecoder = codec_checks.load_decoder(checkpoints, case)
    return loaded


def random_codes(decoder: AudioDecoder, batch: int, frames: int = FRAMES) -> torch.Tensor:
    """[B, T, Q], another utterance in every row."""
    generator = torch.Generator().manual_seed(5)
    shape = (batch, frames, decoder.num_codebooks)
    return torch.randint(decoder.codebook_size, shape, generator=generator)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_streams_outlast_every_window(case: Case, checkpoints: Path) -> None:
    config = load_tokenizer_config(checkpoints / case.name, case.used)
    for module in config.decoder:
        if isinstance(module, MossTransformerConfig):
            assert 3 * module.window < FRAMES * module.frame_positions


@pytest.mark.parametrize("chunks", [(1,), (4,), (7,), (1, 4, 7)])
def test_streaming_equals_the_whole_to_the_last_bit(
    decoder: AudioDecoder, chunks: tuple[int, ...]
) -> None:
    codes = random_codes(decoder, 1)
    whole = decode(decoder, codes, FRAMES)
    assert whole.shape == (FRAMES * decoder.samples_per_frame, 2)
    assert torch.equal(decode(decoder, codes, *chunks), whole)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("count", [1, 3], ids=["one thread", "three threads"])
def test_a_row_does_not_depend_on_its_batch(decoder: AudioDecoder, frames: int, count: int) -> None:
    codes, slots = random_codes(decoder, 3), torch.tensor([4, 0, 3])
    state = decoder.init_state(5)
    with threads(count):
        parts = [decoder.decode(state, slots, part) for part in cut(codes, frames)]
        for row, together in enumerate(torch.cat(parts, dim=1)):
            assert torch.equal(decode(decoder, codes[row : row + 1], frames), together)


def test_streams_come_and_go(decoder: AudioDecoder) -> None:
    """Each begins, pauses and ends on its own, and sounds as alone."""
    codes, state = random_codes(decoder, 3), decoder.init_state(3)
    turns = [[0], [0, 2], [2], [1, 0, 2], [1, 0], [1], [0, 1, 2], [2, 1]]
    heard: list[list[torch.Tensor]] = [[], [], []]
    for turn in turns:
        parts = [codes[row, 3 * len(heard[row]) : 3 * len(heard[row]) + 3] for row in turn]
        sound = decoder.decode(state, torch.tensor(turn), torch.stack(parts))
        for row, samples in zip(turn, sound, strict=True):
            heard[row].append(samples)
    for row, sounds in enumerate(heard):
        alone = decode(decoder, codes[row : row + 1, : 3 * len(sounds)], FRAMES)
        assert torch.equal(torch.cat(sounds), alone)


def test_a_slot_is_new_after_reset_and_others_are_not(decoder: AudioDecoder) -> None:
    codes = random_codes(decoder, 2)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, codes)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, codes)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def test_it_is_causal(decoder: AudioDecoder) -> None:
    codes, border = random_codes(decoder, 1, 9), 5
    changed = codes.clone()
    changed[:, border:] = (changed[:, border:] + 1) % decoder.codebook_size
    ours, theirs = (decode(decoder, each, 9) for each in (codes, changed))
    border *= decoder.samples_per_frame
    assert torch.equal(ours[:border], theirs[:border])
    assert not torch.equal(ours[border:], theirs[border:])


def test_rows_attend_at_once_as_one_by_one() -> None:
    """At once is how a GPU does it."""
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(3, 2, 4, 16, generator=generator)
    keys, values = torch.randn(2, 5, 7, 4, 16, generator=generator)
    slots = torch.tensor([4, 0, 2])
    mask = Arrival.after(torch.tensor([0, 5, 40]), 2, 6).mask
    by_row, at_once = (
        attend(query, keys, values, slots, mask) for attend in (row_by_row, together)
    )
    torch.testing.assert_close(at_once, by_row, rtol=0, atol=1e-6)


def allocated(state: StreamState) -> int:
    """Bytes of a state's tensors."""
    rings = chain.from_iterable(state.rings)
    return state.frames.nbytes + sum(ring.keys.nbytes + ring.values.nbytes for ring in rings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_slot_takes_what_is_said(case: Case, checkpoints: Path) -> None:
    config = load_tokenizer_config(checkpoints / case.name, case.used)
    state = codec_checks.load_decoder(checkpoints, case).init_state(3)
    assert allocated(state) == 3 * slot_bytes(config)


@pytest.mark.parametrize(
    ("shape", "used", "megabytes"), [(LOCAL, 12, 182), (NANO, 16, 26)], ids=["local", "nano"]
)
def test_a_slot_of_the_published_size(
    shape: MossCodecShape, used: int, megabytes: int, tmp_path: Path
) -> None:
    write_config(tmp_path, shape)
    config = load_tokenizer_config(tmp_path, used)
    assert round(slot_bytes(config) / 1e6) == megabytes
