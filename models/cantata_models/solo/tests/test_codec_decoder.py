"""The decoder's streaming contract."""

from __future__ import annotations

import pytest
import torch

from cantata_models.solo.tests.small_models import SMALL, random_codes, small_decoder


@pytest.mark.parametrize("chunks", [(1,) * 7, (3, 4), (1, 2, 4), (7,)])
def test_streaming_equals_the_whole(chunks: tuple[int, ...]) -> None:
    decoder, codes = small_decoder(), random_codes(1, 7)
    state, slot = decoder.init_state(3), torch.tensor([1])
    parts = [decoder.decode(state, slot, part) for part in torch.split(codes, list(chunks), dim=1)]
    assert [part.shape[1] for part in parts] == [n * decoder.samples_per_frame for n in chunks]
    whole = decoder.decode_all(codes)
    assert whole.abs().max() > 1e-3
    assert torch.equal(torch.cat(parts, dim=1)[..., 0], whole)


@pytest.mark.parametrize("batch", [2, 3, 5, 8])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_row_does_not_depend_on_its_batch(batch: int, frames: int) -> None:
    decoder, codes = small_decoder(), random_codes(batch, 2 * frames)
    state = decoder.init_state(batch)
    together = [
        decoder.decode(state, torch.arange(batch), p) for p in torch.split(codes, frames, dim=1)
    ]
    for row in range(batch):
        alone = decoder.init_state(1)
        parts = torch.split(codes[row : row + 1], frames, dim=1)
        for ours, part in zip(together, parts, strict=True):
            theirs = decoder.decode(alone, torch.tensor([0]), part)
            assert torch.equal(ours[row], theirs[0])


def test_slots_are_independent_and_reset_makes_them_new() -> None:
    decoder, codes = small_decoder(), random_codes(2, 4)
    state = decoder.init_state(4)
    first = decoder.decode(state, torch.tensor([2, 0]), codes)
    before = [tensor[0].clone() for tensor in state.tensors()]
    decoder.reset(state, torch.tensor([2]))
    for tensor, kept in zip(state.tensors(), before, strict=True):
        assert torch.equal(tensor[0], kept)
        assert not tensor[2].any()
    again = decoder.decode(state, torch.tensor([2]), codes[:1])
    assert torch.equal(again, first[:1])


def test_it_is_causal() -> None:
    decoder, codes = small_decoder(), random_codes(1, 5)
    changed = codes.clone()
    changed[:, 3:] = (changed[:, 3:] + 1) % SMALL.codec.codebook_size
    ours, theirs = decoder.decode_all(codes), decoder.decode_all(changed)
    border = 3 * decoder.samples_per_frame
    assert torch.equal(ours[:, :border], theirs[:, :border])
    assert not torch.equal(ours[:, border:], theirs[:, border:])


def test_training_and_inference_paths_agree() -> None:
    decoder, codes = small_decoder(), random_codes(2, 3)
    inferred = decoder.decode_all(codes)
    decoder.requires_grad_(True)
    trained = decoder.advance(decoder.init_state(2), decoder.latents(codes))
    assert trained.requires_grad
    torch.testing.assert_close(trained.detach(), inferred, rtol=0, atol=1e-5)
