"""The talker is trained on the inputs that it meets when it speaks."""

from __future__ import annotations

import torch

from cantata_models.solo.networks.codec_encoder import ResidualQuantiser
from cantata_models.solo.networks.phones import phone_ids
from cantata_models.solo.tests.small_models import SMALL, small_talker
from cantata_models.solo.training.examples import BatchMaker, Example, collate, split
from cantata_models.solo.training.talker import TalkerTrainer


def example(index: int, frames: int) -> Example:
    """Returns "hello" of `frames` frames with random latents."""
    talker = small_talker()
    quantiser = ResidualQuantiser(*talker.latent_head.codebooks.shape)
    quantiser.codebooks.copy_(talker.latent_head.codebooks)
    latents = torch.randn(frames, SMALL.codec.latent_size)
    slots = torch.tensor([0, 2, 1, 3, 2, 0])
    slots[-1] = 4 * frames - slots.sum()
    return Example(
        index=index,
        voice=index % 2,
        question=False,
        phones=torch.tensor(phone_ids(["SIL", "HH", "AH", "L", "OW", "SIL"])),
        word_start=torch.tensor([False, True, False, False, False, False]),
        slots=slots,
        latents=latents,
        codes=quantiser.encode(latents),
    )


def test_previous_frames_are_those_of_the_talker() -> None:
    talker, item = small_talker(), example(1, 5)
    trainer = TalkerTrainer(talker, "cpu")
    with torch.inference_mode():
        heard = trainer.quantiser.decode(item.codes)[None]
        rows = trainer.embed_previous(heard, drop=0.0)[0]
        expected = talker.input_rows(torch.zeros(5, SMALL.talker.hidden_size), item.codes)
    torch.testing.assert_close(rows, expected)


def test_padding_does_not_change_a_track() -> None:
    talker = small_talker()
    trainer = TalkerTrainer(talker, "cpu")
    short, long = example(1, 4), example(2, 9)
    with torch.inference_mode():
        alone, _ = trainer.track(collate([short], "cpu"))
        padded, _ = trainer.track(collate([short, long], "cpu"))
    torch.testing.assert_close(padded[0, :4], alone[0])


def test_a_step_has_gradients_everywhere() -> None:
    talker = small_talker().requires_grad_(True)
    trainer = TalkerTrainer(talker, "cpu")
    losses = trainer(collate([example(1, 4), example(2, 6)], "cpu"), own_share=0.5, drop=0.2)
    torch.autograd.backward(sum(losses, torch.zeros(())))
    without = [name for name, p in talker.named_parameters() if p.grad is None]
    assert without == []


def test_batches_are_drawn_from_the_training_part() -> None:
    examples = [example(index, 3 + index % 5) for index in range(120)]
    train, validation = split(examples)
    assert [item.index for item in validation] == [0, 50, 100]
    drawn = BatchMaker(train, frames=30, seed=0).draw()
    assert 4 <= len(drawn) <= 10
    assert len({item.index for item in drawn}) == len(drawn)
