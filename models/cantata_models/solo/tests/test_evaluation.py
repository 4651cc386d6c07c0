"""Each measure of the evaluation must detect the fault that it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cantata_models.solo.training.evaluation.acoustics import (
    HOP,
    SAMPLE_RATE,
    Samples,
    a_weights,
    analyze,
    median_pitch_hz,
)
from cantata_models.solo.training.evaluation.edges import Edges
from cantata_models.solo.training.evaluation.items import (
    SPEEDS,
    EvaluatedSentence,
    Selection,
    UnknownChoice,
    plan_items,
)
from cantata_models.solo.training.evaluation.judge import Judge
from cantata_models.solo.training.evaluation.likeness import follow, recognize, rows
from cantata_models.solo.training.evaluation.measures import RecordingMeasures, compare, measure
from cantata_models.solo.training.evaluation.pace import RealTimeFactors
from cantata_models.solo.training.evaluation.report import BEGIN, END, put_between_markers, report
from cantata_models.solo.training.evaluation.results import RESULT, Result, read_results
from cantata_models.solo.training.evaluation.seams import measure_seams
from cantata_models.solo.training.evaluation.short import check_voice, make_baseline, problems
from cantata_models.solo.training.evaluation.summary import summarize
from cantata_models.solo.training.evaluation.timbre import usual_spread
from cantata_models.solo.training.evaluation.warping import accumulate, warp_path
from cantata_models.solo.training.speakers import HELD_OUT_PSEUDO

FRAME = 1920
PHONES_MS = (90, 140, 80, 160, 110, 150, 90)


def buzz(pitch_hz: float = 120.0, formants: float = 1.0, seed: int = 0) -> Samples:
    """Seven synthetic phones, alternately voiced and hissing, between silences."""
    rng = np.random.default_rng(seed)
    parts: list[Samples] = [np.zeros(720, dtype=np.float32)]
    for number, milliseconds in enumerate(PHONES_MS):
        count = milliseconds * SAMPLE_RATE // 1000
        time = np.arange(count) / SAMPLE_RATE
        if number % 2 == 0:
            sound = 0.08 * rng.standard_normal(count)
            sound = np.diff(sound, prepend=0.0) if number % 4 == 0 else np.cumsum(sound) * 0.1
        else:
            sound = np.zeros(count)
            for k in range(1, 30):
                near = np.exp(-np.abs(k * pitch_hz - formants * (200 + 300 * number)) / 300)
                sound += near * np.sin(2 * np.pi * k * pitch_hz * time)
            sound *= 0.3 / np.abs(sound).max()
        ramp = np.minimum(1, np.minimum(np.arange(count), np.arange(count)[::-1]) / 120)
        parts.append((sound * ramp).astype(np.float32))
    return np.concatenate([*parts, np.zeros(2400, dtype=np.float32)])


def vowel(pitch_hz: float = 120.0) -> Samples:
    """One second of a steady voiced sound."""
    time = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    sound = np.zeros(SAMPLE_RATE)
    for k in range(1, 12):
        sound += np.sin(2 * np.pi * pitch_hz * k * time + k * k) / k
    return (0.2 * sound).astype(np.float32)


def test_warping_finds_the_cheapest_path() -> None:
    rng = np.random.default_rng(0)
    distance = rng.random((23, 31))
    cheapest = np.full((24, 32), np.inf)
    cheapest[0, 0] = 0
    for i in range(23):
        for j in range(31):
            before = min(cheapest[i, j], cheapest[i, j + 1], cheapest[i + 1, j])
            cheapest[i + 1, j + 1] = distance[i, j] + before
    assert accumulate(distance)[-1, 23] == pytest.approx(cheapest[23, 31])
    ours, theirs = warp_path(distance)
    assert distance[ours, theirs].sum() == pytest.approx(cheapest[23, 31])
    assert (ours[0], theirs[0], ours[-1], theirs[-1]) == (0, 0, 22, 30)


@pytest.mark.parametrize("pitch_hz", [85.0, 140.0, 230.0, 340.0])
def test_pitch_is_found(pitch_hz: float) -> None:
    found = median_pitch_hz(analyze(vowel(pitch_hz)))
    assert 12 * abs(np.log2(found / pitch_hz)) < 0.3


def test_a_whole_sentence_has_both_its_ends() -> None:
    likeness = compare(buzz(seed=1), buzz(seed=2))
    assert likeness.edges == Edges(first_missing=False, last_missing=False)


def test_levels_are_weighted_as_the_standard_says() -> None:
    hertz = np.array([31.5, 63, 125, 250, 500, 1000, 2000, 4000, 8000])
    nominal_db = [-39.4, -26.2, -16.1, -8.6, -3.2, 0.0, 1.2, 1.0, -1.1]
    assert 10 * np.log10(a_weights(hertz)) == pytest.approx(nominal_db, abs=0.15)


def test_a_blow_on_the_microphone_is_no_phone() -> None:
    teacher = buzz(seed=2)
    time = np.arange(1440) / SAMPLE_RATE
    blow = 0.05 * np.sin(2 * np.pi * 50 * time) * np.hanning(1440)
    teacher[-2000:-560] += blow.astype(np.float32)
    assert compare(buzz(seed=1), teacher).edges == Edges(first_missing=False, last_missing=False)


@pytest.mark.parametrize("left", ["silence", "nothing"])
def test_a_dropped_phone_is_noticed(left: str) -> None:
    teacher = buzz(seed=2)
    first = 720 + PHONES_MS[0] * SAMPLE_RATE // 1000
    last = len(teacher) - 2400 - PHONES_MS[-1] * SAMPLE_RATE // 1000
    beheaded, curtailed = buzz(seed=1), buzz(seed=1)
    if left == "silence":
        beheaded[:first], curtailed[last:] = 0, 0
    else:
        beheaded = np.concatenate([beheaded[:720], beheaded[first:]])
        curtailed = np.concatenate([curtailed[:last], curtailed[-2400:]])
    assert compare(beheaded, teacher).edges == Edges(first_missing=True, last_missing=False)
    assert compare(curtailed, teacher).edges == Edges(first_missing=False, last_missing=True)


@pytest.mark.parametrize("fault", ["click", "gap", "jump"])
def test_a_broken_boundary_is_noticed(fault: str) -> None:
    sound = vowel()
    assert measure_seams(sound, FRAME).broken == 0
    place = 4 * FRAME
    if fault == "click":
        sound[place] += 0.1
    elif fault == "gap":
        sound[place : place + HOP] = 0
    else:
        sound = np.concatenate([sound[:place], sound[place + 53 :]])
    assert measure_seams(sound, FRAME).broken == 1


@pytest.mark.thorough
def test_what_is_heard_does_not_depend_on_what_was_heard_before() -> None:
    judge = Judge()
    sounds = [buzz(pitch, seed=seed) for seed, pitch in enumerate((100.0, 160.0, 220.0))]
    sounds.append((0.01 * np.random.default_rng(5).standard_normal(SAMPLE_RATE)).astype("float32"))
    there = [judge.hear(sound, SAMPLE_RATE) for sound in sounds]
    back = [judge.hear(sound, SAMPLE_RATE) for sound in sounds[::-1]]
    assert any(there)
    assert there == back[::-1]
    assert there[2] == Judge().hear(sounds[2], SAMPLE_RATE)
    # Without a restart of the features, this was recognized differently after the first sound.
    fickle = np.concatenate([buzz(220.0, 0.9, seed=2), buzz(110.0, 0.7, seed=7)])
    judge.hear(sounds[0], SAMPLE_RATE)
    assert judge.hear(fickle, SAMPLE_RATE) == Judge().hear(fickle, SAMPLE_RATE)


def test_samples_at_full_scale_are_counted() -> None:
    sound = buzz()
    assert measure(sound, None).clipped == 0
    sound[5000:5003] = 1.0
    assert measure(sound, None).clipped == 3


def speakers(pitch_hz: float, formants: float) -> list[RecordingMeasures]:
    return [measure(buzz(pitch_hz + k, formants, seed=k), None) for k in range(3)]


def test_speakers_are_distinguished_and_followed() -> None:
    teachers = {"low": speakers(100, 1.0), "high": speakers(200, 1.15)}
    spread = usual_spread([rows(sounds) for sounds in teachers.values()])
    found = {name: rows(sounds) for name, sounds in teachers.items()}
    swapped = {"low": found["high"], "high": found["low"]}
    assert recognize(found, found, spread).accuracy == 1.0
    assert recognize(swapped, found, spread).accuracy == 0.0
    own = speakers(150, 1.08)
    followed = follow(speakers(151, 1.08), own, teachers, "new", spread)
    assert followed.wins
    assert followed.pitch_semitones < 0.5 < followed.stock_pitch_semitones
    assert not follow(teachers["low"], own, teachers, "new", spread).wins


def test_the_plan_covers_voices_groups_speeds_and_references() -> None:
    items = plan_items(["clara", "ben"], Selection())
    assert len(items) == len(set(items))
    assert {item.speed for item in items} == {1.0, *SPEEDS}
    followed = {item.speaker for item in items if item.reference}
    assert followed == {speaker.name for speaker in HELD_OUT_PSEUDO}
    assert not any(item.reference == item.text for item in items)
    some = plan_items(["clara", "ben"], Selection(voices=("ben",), groups=("long",), short=True))
    assert [(item.speaker, item.group) for item in some] == [("ben", "long")]
    with pytest.raises(UnknownChoice, match=r"unknown voice 'bob'; there are clara, ben"):
        plan_items(["clara", "ben"], Selection(voices=("bob",)))


def some_results() -> list[Result]:
    """The short form with both voices equal to their teachers and recognized perfectly."""
    found: list[Result] = []
    chosen = plan_items(["clara", "ben"], Selection(short=True))
    chosen += [
        EvaluatedSentence("ben", i.group, i.text, 2.0) for i in chosen if i.speaker == "ben"
    ][:2]
    plain = next(item for item in chosen if item.group == "plain")
    chosen.append(
        EvaluatedSentence(HELD_OUT_PSEUDO[0].name, "plain", plain.text, reference="so it is.")
    )
    for number, item in enumerate(chosen):
        sound = buzz(200 if item.speaker == "clara" else 100, seed=number)
        bare = measure(sound, None)
        heard = RecordingMeasures(
            **{name: getattr(bare, name) for name in RecordingMeasures.__slots__}
            | {"words": item.text}
        )
        likeness = compare(sound, sound)
        found.append(Result(item, heard, heard, likeness, heard))
    return found


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return some_results()


def test_results_survive_an_interruption(results: list[Result], tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    lines = [RESULT.dump_json(result).decode() for result in results[:3]]
    path.write_text("\n".join(lines)[:-40])
    assert list(read_results(path).values()) == results[:2]
    with path.open("a") as out:
        out.write(lines[2] + "\n")
    assert list(read_results(path).values()) == results[:3]


def test_the_report_replaces_what_is_between_the_markers(
    results: list[Result], tmp_path: Path
) -> None:
    summary = summarize(
        "abc", results, {"clara": RealTimeFactors(0.05, 0.03), "ben": RealTimeFactors(0.07, 0.04)}
    )
    assert summary.overall.speech.wer == 0
    assert summary.overall.duration_ratio == pytest.approx(1)
    text = report(summary)
    for wanted in ("clara", "questions", "| 2 |", HELD_OUT_PSEUDO[0].name, "broken boundaries"):
        assert wanted in text
    assert "| talker, s per s of speech | 0.050 | 0.070 | 0.060 |" in text
    card = tmp_path / "card.md"
    card.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_between_markers(card, text)
    put_between_markers(card, text)
    assert card.read_text() == f"before\n{BEGIN}\n{text}{END}\nafter\n"


def test_the_short_form_notices_what_became_worse(results: list[Result]) -> None:
    baseline = make_baseline("abc", results)
    then = baseline.voices["ben"]
    good = {r.item.text: r.speech for r in results if r.item.speaker == "ben" and r.item.speed == 1}
    assert problems("ben", check_voice(good, "ben", baseline), then) == []
    loud = buzz(200)
    loud[3 * FRAME :: FRAME] = 1.0
    worse = dict.fromkeys(good, measure(np.concatenate([loud, loud]), None))
    found = " ".join(problems("ben", check_voice(worse, "ben", baseline), then))
    for wanted in ("error rate", "durations", "sound like", "full scale", "boundaries"):
        assert wanted in found
