# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""The stage: parts of a sentence, word times, seeds, and what it cannot speak."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import RequestFailed
from cantata_layers.whole_number_conv import WholeNumberConv
from cantata_layers.winograd_conv import WinogradConv
from cantata_models.kokoro import voice as stage
from cantata_models.kokoro.checkpoint import (
    Excitation,
    Kokoro,
    halve_convolutions,
    load_network,
    split_convolutions,
    use_winograd_convolutions,
)
from cantata_models.kokoro.sound_network import draw_noise
from cantata_models.kokoro.tests.network_driver import expect_word_times, make_input
from cantata_models.kokoro.tests.parity.scenarios import PLAIN, KokoroCheckpointKey, KokoroScenario
from cantata_models.kokoro.text_network import Moments
from cantata_models.kokoro.voice import (
    CHUNK_S,
    CONTEXT,
    FADE,
    KokoroVoice,
    find_pauses,
    load_voice,
    plan_cuts,
    speak_parts,
)
from cantata_models.kokoro.voices import KokoroInput

CLAUSES = "ʃi ˈOpənd ðə lˈɛɾəɹ, ɹˈɛd ɪt twˈIs; ænd pˌʊt ɪt bˈæk ˌɔn ðə tˈAbᵊl."
STEP = 300


@pytest.fixture(scope="module")
def voice(checkpoints: dict[KokoroCheckpointKey, Path]) -> KokoroVoice:
    """In float32 throughout, whatever the CPU can."""
    loaded = load_voice(checkpoints[PLAIN], torch.device("cpu"))
    assert isinstance(loaded, KokoroVoice)
    network = load_network(checkpoints[PLAIN], loaded.network.config, loaded.device)
    return replace(loaded, network=network)


@pytest.fixture(scope="module")
def given(voice: KokoroVoice) -> KokoroInput:
    """A sentence of three clauses; its words are between the spaces."""
    made = make_input(KokoroScenario("", CLAUSES), voice.network.config.vocabulary)
    words, begin = list[tuple[int, int]](), 1
    for word in CLAUSES.split(" "):
        words.append((begin, begin + len(word.rstrip(",;."))))
        begin += len(word) + 1
    return replace(made, words=np.array(words, np.int64), seed=7)


@pytest.fixture(scope="module")
def excitation(voice: KokoroVoice, given: KokoroInput) -> Excitation:
    style = voice.mix_style(given)
    prosody = voice.network.predict(torch.from_numpy(given.phones), style, 1.0)
    noise = draw_noise(given.seed, prosody.pitch.shape[1] * STEP)
    return voice.network.excite(prosody, style, noise)


def joined(parts: list[Pcm]) -> np.ndarray:
    return np.concatenate([part.samples[:, 0] for part in parts])


def test_a_clause_alone_is_the_whole_decode(voice: KokoroVoice, given: KokoroInput) -> None:
    alone = replace(given, phones=np.append(given.phones[:20], 0), words=given.words[:2])
    parts = list(voice.synthesize(alone))
    style = voice.mix_style(alone)
    prosody = voice.network.predict(torch.from_numpy(alone.phones), style, 1.0)
    pitches = prosody.pitch.shape[1]
    made = voice.network.excite(prosody, style, draw_noise(7, pitches * STEP))
    whole = voice.network.generate(made, 0, pitches).numpy()
    np.testing.assert_array_equal(joined(parts), np.clip(whole, -1, 1))
    assert all(0 < part.units <= CHUNK_S * voice.sample_rate for part in parts)


class Recorded(Moments):
    """Gives every part the moments of the first one that it got: the whole sentence."""

    def add(self, norm: torch.nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        known = self._known.get(norm)
        return super().add(norm, x) if known is None else known[1:]


def test_convolutions_see_no_further_than_the_context(
    voice: KokoroVoice, excitation: Excitation
) -> None:
    """With the whole sentence's means and variances, any part is exactly its part of the whole."""
    length = excitation.frames.shape[2]
    moments = Recorded()
    whole = voice.network.generate(excitation, 0, length, moments).numpy()
    begin, end = length // 3, length // 2
    first, last = begin - CONTEXT, end + CONTEXT
    part = voice.network.generate(excitation, first, last, moments).numpy()
    ours = part[CONTEXT * STEP : -CONTEXT * STEP]
    theirs = whole[begin * STEP : end * STEP]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_bfloat16_is_nearly_the_same_sound(
    voice: KokoroVoice,
    excitation: Excitation,
    checkpoints: dict[KokoroCheckpointKey, Path],
) -> None:
    length = excitation.frames.shape[2]
    halved = load_network(checkpoints[PLAIN], voice.network.config, voice.device)
    halve_convolutions(halved)
    whole = voice.network.generate(excitation, 0, length).numpy()
    error = halved.generate(excitation, 0, length).numpy() - whole
    assert 0 < error.std() < 0.03 * whole.std()


def set_eight_bits(network: Kokoro) -> None:
    """Give the convolutions weights that are 254 steps wide, as those of an 8-bit export."""
    for conv in network.decoder.modules():
        if isinstance(conv, torch.nn.Conv1d):
            step = conv.weight.abs().max() / 127
            numbers = (conv.weight / step).round().flatten()
            numbers[0] = 1
            conv.weight.copy_(numbers.view(conv.weight.shape) * step)


def count_whole(network: Kokoro) -> int:
    return sum(isinstance(one, WholeNumberConv) for one in network.modules())


@pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(), reason="this processor has no VNNI instructions"
)
def test_whole_numbers_are_nearly_the_same_sound(
    voice: KokoroVoice, excitation: Excitation, checkpoints: dict[KokoroCheckpointKey, Path]
) -> None:
    """The error is that of rounding to 16 bits, again and again."""
    length = excitation.frames.shape[2]
    network = load_network(checkpoints[PLAIN], voice.network.config, voice.device)
    set_eight_bits(network)
    whole = network.generate(excitation, 0, length).numpy()
    split_convolutions(network)
    assert count_whole(network) == 10 + 4 * 6, "of the decoder, and the generator's wide ones"
    made = network.generate(excitation, 0, length).numpy()
    assert 0 < (made - whole).std() < 0.003 * whole.std()
    np.testing.assert_array_equal(network.generate(excitation, 0, length).numpy(), made)


def test_only_weights_of_8_bits_are_whole_numbers(
    voice: KokoroVoice, checkpoints: dict[KokoroCheckpointKey, Path]
) -> None:
    network = load_network(checkpoints[PLAIN], voice.network.config, voice.device)
    split_convolutions(network)
    assert not count_whole(network)


def test_fewer_multiplications_are_nearly_the_same_sound(
    voice: KokoroVoice, excitation: Excitation, checkpoints: dict[KokoroCheckpointKey, Path]
) -> None:
    length = excitation.frames.shape[2]
    network = load_network(checkpoints[PLAIN], voice.network.config, voice.device)
    whole = network.generate(excitation, 0, length).numpy()
    use_winograd_convolutions(network)
    assert sum(isinstance(one, WinogradConv) for one in network.modules()) == 4 * 6
    made = network.generate(excitation, 0, length).numpy()
    assert 0 < (made - whole).std() < 1e-4 * whole.std()
    np.testing.assert_array_equal(network.generate(excitation, 0, length).numpy(), made)


@pytest.mark.parametrize(
    ("has_bfloat16", "has_vnni", "called"),
    [
        (True, True, ["halve"]),
        (False, True, ["split", "use_winograd"]),
        (False, False, ["use_winograd"]),
    ],
)
def test_the_cpu_decides_how_convolutions_multiply(
    checkpoints: dict[KokoroCheckpointKey, Path],
    monkeypatch: pytest.MonkeyPatch,
    has_bfloat16: bool,
    has_vnni: bool,
    called: list[str],
) -> None:
    seen = list[str]()
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_bfloat16)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: has_vnni)
    for name in ("halve", "split", "use_winograd"):
        monkeypatch.setattr(
            stage, f"{name}_convolutions", lambda network, name=name: seen.append(name)
        )
    load_voice(checkpoints[PLAIN], torch.device("cpu"))
    assert seen == called


def level_db(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(10 * np.log10(np.square(ours).sum() / np.square(theirs).sum()))


def test_parts_are_as_loud_as_in_the_whole(voice: KokoroVoice, excitation: Excitation) -> None:
    """docs/models/kokoro.md says how near they are with real weights."""
    length = excitation.frames.shape[2]
    whole = voice.network.generate(excitation, 0, length).numpy()
    cuts = [length // 3, 2 * length // 3]
    parts = list(speak_parts(voice.network, excitation, cuts))
    assert [len(part) for part in parts] == [
        STEP * (end - begin) for begin, end in zip([0, *cuts], [*cuts, length], strict=True)
    ]
    begin = 0
    for part in parts:
        assert abs(level_db(part, whole[begin : begin + len(part)])) < 2
        begin += len(part)


def test_a_part_fades_into_the_next(voice: KokoroVoice, excitation: Excitation) -> None:
    cut = excitation.frames.shape[2] // 2
    first, second = speak_parts(voice.network, excitation, [cut])
    steps = np.abs(np.diff(np.concatenate([first, second])))
    at_seam = steps[cut * STEP - STEP : (cut + FADE) * STEP]
    assert at_seam.max() <= 1.5 * np.quantile(steps, 0.999)


def test_pauses_and_cuts(voice: KokoroVoice, given: KokoroInput) -> None:
    durations = np.full(len(given.phones), 10, np.int64)
    pauses = find_pauses(given.phones, durations, voice.network.config.vocabulary)
    comma, semicolon = CLAUSES.index(",") + 1, CLAUSES.index(";") + 1
    assert pauses == [(20 * at, 20 * (at + 2)) for at in (comma, semicolon)]
    energy = np.full(20 * len(given.phones), 3.0, np.float32)
    energy[pauses[0][0] + 5] = 1.0
    assert plan_cuts(pauses, energy) == [pauses[0][0] + 5, pauses[1][0]]
    assert plan_cuts([(100, 107)], energy) == [], "too short to be silent"
    assert plan_cuts([(20, 40)], energy) == [], "too near to the beginning"
    assert plan_cuts([(100, 120), (150, 170)], energy) == [100], "too near to the cut before"
    assert plan_cuts([(len(energy) - 60, len(energy) - 40)], energy) == [], "too near to the end"


def test_words_have_the_times_of_their_phones(voice: KokoroVoice, given: KokoroInput) -> None:
    first, *rest = voice.synthesize(given)
    assert not any(part.words for part in rest)
    prosody = voice.network.predict(
        torch.from_numpy(given.phones), voice.mix_style(given), given.speed
    )
    ends = np.append(0, np.cumsum(prosody.durations.numpy())) * 0.025
    expected = expect_word_times(given.words, ends)
    # Random weights are not silent before the first phone.
    expected[0] = (0, expected[0][1])
    times = [(word.start_s, word.end_s) for word in first.words]
    np.testing.assert_allclose(times, expected, atol=0.001)
    seconds = len(joined([first, *rest])) / voice.sample_rate
    assert seconds == pytest.approx(ends[-1])
    assert len(first.words) == len(given.words)


def test_a_text_begins_without_the_silence_before_it(
    voice: KokoroVoice, given: KokoroInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As published weights make it; random ones are never silent."""
    made = np.concatenate([np.full(6000, 1e-4), np.full(24_000, 0.5)]).astype(np.float32)
    module = "cantata_models.kokoro.voice.speak_parts"
    monkeypatch.setattr(module, lambda *given: iter([made.copy(), made.copy()]))
    later = list(voice.synthesize(given))
    begins = list(voice.synthesize(replace(given, begins=True)))
    np.testing.assert_array_equal(joined(later), np.tile(made, 2))
    np.testing.assert_array_equal(joined(begins), np.tile(made, 2)[4800:])
    moved = [(max(w.start_s - 0.2, 0), w.end_s - 0.2) for w in later[0].words]
    np.testing.assert_allclose([(w.start_s, w.end_s) for w in begins[0].words], moved)


def test_speed_is_the_voice_s_own(voice: KokoroVoice, given: KokoroInput) -> None:
    lengths = [
        len(joined(list(voice.synthesize(replace(given, speed=speed))))) for speed in (0.5, 1, 2)
    ]
    assert lengths[0] / lengths[1] == pytest.approx(2, rel=0.1)
    assert lengths[1] / lengths[2] == pytest.approx(2, rel=0.1)


def test_a_seed_gives_its_samples_alone_and_in_company(
    voice: KokoroVoice, given: KokoroInput
) -> None:
    alone = joined(list(voice.synthesize(given)))
    other = replace(given, seed=8, voices=("bf_emma",))
    pairs = list(zip_longest(voice.synthesize(given), voice.synthesize(other)))
    np.testing.assert_array_equal(joined([ours for ours, _ in pairs if ours]), alone)
    again = joined(list(voice.synthesize(replace(given, seed=8))))
    assert len(again) == len(alone)
    assert not np.array_equal(again, alone)


def test_a_mixture_is_between_its_voices(voice: KokoroVoice, given: KokoroInput) -> None:
    one, other = (
        voice.mix_style(replace(given, voices=(name,))) for name in ("af_heart", "am_adam")
    )
    mixed = voice.mix_style(replace(given, voices=("af_heart", "am_adam"), weights=(0.75, 0.25)))
    torch.testing.assert_close(mixed, 0.75 * one + 0.25 * other)


def test_what_the_stage_cannot_speak(voice: KokoroVoice, given: KokoroInput) -> None:
    with pytest.raises(RequestFailed, match="nobody"):
        list(voice.synthesize(replace(given, voices=("nobody",))))
    for count in (0, 511):
        phones = np.array([0, *[5] * count, 0], np.int64)
        with pytest.raises(RequestFailed, match=rf"{count} phones; it may have 1 to 510"):
            list(voice.synthesize(replace(given, phones=phones)))


def test_one_phone_is_spoken(voice: KokoroVoice, given: KokoroInput) -> None:
    short = replace(given, phones=given.phones[[0, 1, -1]], words=given.words[:0])
    assert len(joined(list(voice.synthesize(short)))) > 0
