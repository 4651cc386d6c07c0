"""Plain functions of the training code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from cantata_layers.english.lexicon import load_lexicon
from cantata_layers.training.loop import HALF_COSINE
from cantata_models.solo.networks.codec_encoder import ResidualQuantizer
from cantata_models.solo.text.tokens import SIL_ID, phone_ids
from cantata_models.solo.training import word_lists
from cantata_models.solo.training.align import phone_ends, read_text, to_slots
from cantata_models.solo.training.audio import PEAK, SAMPLE_RATE, trim
from cantata_models.solo.training.evaluation.judge import score
from cantata_models.solo.training.quantizer import QuantizerTrainer
from cantata_models.solo.training.text import bare, read_heldout, spell_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "zero"),
        (19, "nineteen"),
        (40, "forty"),
        (101, "one hundred one"),
        (20_015, "twenty thousand fifteen"),
        (999_999, "nine hundred ninety nine thousand nine hundred ninety nine"),
    ],
)
def test_numbers_are_spelled(value: int, text: str) -> None:
    assert " ".join(spell_number(value)) == text


def test_word_lists_are_in_the_lexicon() -> None:
    frames = " ".join(word_lists.FRAMES + word_lists.PHRASES)
    used = [word for word in bare(frames.replace(",", " ")).split() if word not in ("o'clock",)]
    slots = {
        part.lower() for frame in word_lists.FRAMES for part in frame.split() if part.isupper()
    }
    lists = [*word_lists.NOUNS, *word_lists.ADJECTIVES, *word_lists.FIRST_NAMES, *used]
    missing = {word for word in lists if word not in slots and load_lexicon().get(word) is None}
    assert not missing


def test_heldout_sentences_are_many_and_readable() -> None:
    items = read_heldout()
    sizes = Counter(item.group for item in items)
    assert set(sizes) == {"plain", "numbers", "names", "questions", "short", "long"}
    assert min(sizes.values()) >= 20
    assert len({bare(item.text) for item in items}) == len(items)
    for item in items:
        assert (len(item.text.split()) >= 40) == (item.group == "long")
        assert read_text(item.text).question == item.text.endswith("?")


def test_marks_become_silence() -> None:
    reading = read_text("yes, no.")
    assert reading.words == ("yes", "no")
    expected = phone_ids(["SIL", "Y", "EH", "S", "SIL", "N", "OW", "SIL"])
    assert list(reading.phones) == expected
    assert reading.word_start == (False, True, False, False, False, True, False, False)


def test_aligned_silences_find_their_place() -> None:
    reading = read_text("yes, no.")
    segments = [("Y", 8), ("EH", 10), ("S", 9), ("SIL", 12), ("N", 7), ("OW", 12), ("SIL", 10)]
    ends = phone_ends(reading, segments)
    assert ends == [0, 8, 18, 27, 39, 46, 58, 68]
    assert phone_ends(reading, [("N", 7)]) is None
    # A pause without a punctuation mark lengthens the phone before it.
    plain = read_text("yes no.")
    assert phone_ends(plain, segments) == [0, 8, 18, 39, 46, 58, 68]


def test_slots_fill_the_sound() -> None:
    slots = to_slots([0, 8, 18, 30], 8000)
    assert slots == (0, 4, 5, 11)
    assert sum(slots) == 4 * 5


def test_trim_leaves_a_little_silence() -> None:
    tone = np.sin(np.arange(SAMPLE_RATE) * 0.1).astype(np.float32) * 0.1
    silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
    trimmed = trim(np.concatenate([silence, tone, silence]))
    assert np.abs(trimmed).max() == pytest.approx(PEAK, rel=1e-3)
    assert len(trimmed) / SAMPLE_RATE == pytest.approx(1.15, abs=0.01)


def test_learning_rate_rises_then_falls() -> None:
    scales = [HALF_COSINE.find_scale(progress, 0) for progress in (0.0, 0.02, 0.5, 1.0)]
    assert scales[0] < 0.01 < scales[2] < scales[1]
    assert scales[3] == pytest.approx(HALF_COSINE.final)


def test_score_ignores_marks_and_case() -> None:
    result = score(["Hello, world!", "It's late."], ["hello world", "it's fate"])
    assert result.wer == pytest.approx(25.0)
    assert result.sentences == 2


def test_quantizer_training_lowers_the_error() -> None:
    torch.manual_seed(0)
    rows = torch.randn(4, 64, 8)
    quantizer = ResidualQuantizer(3, 16, 8)
    trainer = QuantizerTrainer(quantizer)
    trainer.start(rows.reshape(-1, 8))
    coded = quantizer.decode(quantizer.encode(rows))
    assert (coded - rows).square().mean() < 0.35 * rows.square().mean()
    wanted = rows.clone().requires_grad_()
    quantized, commitment = trainer.quantize(wanted)
    torch.autograd.backward(quantized.sum() + commitment)
    assert quantized.shape == rows.shape
    assert wanted.grad is not None


def test_silence_is_the_last_phone() -> None:
    assert SIL_ID == 39
