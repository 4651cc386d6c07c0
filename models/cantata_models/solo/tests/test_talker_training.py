"""The talker trains on the same inputs that it gets in serving."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch

from cantata_models.solo.networks.codec_encoder import ResidualQuantizer
from cantata_models.solo.tests.small_models import SMALL, small_talker
from cantata_models.solo.text.tokens import phone_ids
from cantata_models.solo.training.examples import BatchMaker, Example, collate, split
from cantata_models.solo.training.speaker_vectors import SpeakerVectors
from cantata_models.solo.training.talker import TalkerTrainer, usual_log_durations

SPEAKERS = SpeakerVectors(
    {voice.id: torch.randn(3, SMALL.text.speaker_size) for voice in SMALL.voices}
)


def example(index: int, frames: int) -> Example:
    """Returns "hello" in `frames` frames with random latents."""
    talker = small_talker()
    quantizer = ResidualQuantizer(*talker.latent_head.codebooks.shape)
    quantizer.codebooks.copy_(talker.latent_head.codebooks)
    latents = torch.randn(frames, SMALL.codec.latent_size)
    slots = torch.tensor([0, 2, 1, 3, 2, 0])
    slots[-1] = 4 * frames - slots.sum()
    return Example(
        index=index,
        speaker=SMALL.voices[index % 2].id,
        rate=1.0,
        question=False,
        phones=torch.tensor(phone_ids(["SIL", "HH", "AH", "L", "OW", "SIL"])),
        word_start=torch.tensor([False, True, False, False, False, False]),
        slots=slots,
        latents=latents,
        codes=quantizer.encode(latents),
    )


def test_previous_frames_are_those_of_the_talker() -> None:
    talker, item = small_talker(), example(1, 5)
    trainer = TalkerTrainer(talker, "cpu")
    with torch.inference_mode():
        heard = trainer.quantizer.decode(item.codes)[None]
        rows = trainer.embed_previous(heard, drop=0.0)[0]
        expected = talker.input_rows(torch.zeros(5, SMALL.talker.hidden_size), item.codes)
    torch.testing.assert_close(rows, expected)


def test_padding_does_not_change_a_track() -> None:
    talker = small_talker()
    trainer = TalkerTrainer(talker, "cpu")
    short, long = example(1, 4), example(2, 9)
    both = collate([short, long], SPEAKERS, "cpu")
    # Vectors are drawn at random, so draw the same one twice.
    one = replace(collate([short], SPEAKERS, "cpu"), speaker=both.speaker[:1])
    with torch.inference_mode():
        alone, _ = trainer.track(one)
        padded, _ = trainer.track(both)
    torch.testing.assert_close(padded[0, :4], alone[0])


def test_a_step_has_gradients_everywhere() -> None:
    talker = small_talker().requires_grad_(True)
    trainer = TalkerTrainer(talker, "cpu")
    losses = trainer(
        collate([example(1, 4), example(2, 6)], SPEAKERS, "cpu"), own_share=0.5, drop=0.2
    )
    torch.autograd.backward(sum(losses, torch.zeros(())))
    without = [name for name, p in talker.named_parameters() if p.grad is None]
    assert without == []


def test_fast_readings_teach_the_usual_durations() -> None:
    batch = collate([example(1, 4)], SPEAKERS, "cpu")
    fast = replace(batch, slots=batch.slots * 2, rate=torch.tensor([0.5]))
    torch.testing.assert_close(usual_log_durations(fast), usual_log_durations(batch))


def test_batches_are_drawn_from_the_training_part() -> None:
    examples = [example(index, 3 + index % 5) for index in range(120)]
    train, validation = split(examples)
    assert [item.index for item in validation] == [0, 50, 100]
    drawn = BatchMaker(train, frames=30, seed=0).draw()
    assert 4 <= len(drawn) <= 10
    assert len({item.index for item in drawn}) == len(drawn)


def test_who_has_few_examples_is_heard_more_often() -> None:
    # Odd indices are ben's; clara has nine times as many.
    examples = [example(index, 4) for index in range(180) if index % 2 == 0 or index % 18 == 9]
    maker = BatchMaker(examples, frames=40, seed=0)
    heard = Counter(item.speaker for _ in range(100) for item in maker.draw())
    # ben's share is a tenth by number and a quarter by its root. It is a little less than that,
    # since a batch contains no example twice.
    assert 0.17 < heard["ben"] / heard.total() < 0.25
