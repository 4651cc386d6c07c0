"""The trainings, on a hum: they learn it, go on where they stopped, and begin as hibari."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cantata_layers.harmonic_vocoder import HOP, Spectra, draw_noise, make_pulses, synthesize
from cantata_layers.speaker_features import SPEAKER_SIZE
from cantata_models.quartet.network import QuartetNetwork
from cantata_models.quartet.tests.test_training_data import HUM, HummingTeacher
from cantata_models.quartet.training.bank import SpeechBank, SpokenBy
from cantata_models.quartet.training.losses import Discriminator, SpectrumDistance, measure_hinge
from cantata_models.quartet.training.prosody_training import ProsodyPlan, ProsodyTrainer
from cantata_models.quartet.training.run_state import LAST_RATE, TimeBudget
from cantata_models.quartet.training.shards import write_shard
from cantata_models.quartet.training.spectrum_training import SpectrumPlan, SpectrumTrainer
from cantata_models.quartet.training.teachers import ScriptLine
from cantata_models.quartet.training.vocoder import synthesize_batch

PLAN = SpectrumPlan(rows=2, frames=36, rate=1e-3, adversary_after=6, adversary_warm_steps=1)
LINE = ScriptLine("", tuple(range(1, 25)), 1.0)


@pytest.fixture
def bank(tmp_path: Path) -> SpeechBank:
    folder = tmp_path / "speech"
    spoken = [HummingTeacher(hertz).read(HUM, LINE) for hertz in (110.0, 160.0)]
    write_shard(folder / "hum.npz", spoken)
    return SpeechBank(folder, ("a_hum",), 1, PLAN.frames)


@pytest.fixture
def network() -> QuartetNetwork:
    torch.manual_seed(0)
    made = QuartetNetwork(1)
    for block in (*made.spectrum.blocks, *made.prosody.blocks):
        torch.nn.init.constant_(block.get_parameter("gamma"), 0.1)
    torch.nn.init.constant_(made.spectrum.out.bias, -4.0)
    return made


def test_the_vocoder_is_the_served_one() -> None:
    rng = np.random.default_rng(1)
    a, b, c, d, e = parts = [rng.normal(-3, 1, (601, 20)).astype(np.float32) for _ in range(5)]
    c[:] = -40  # without noise, which both draw for themselves
    pitch = rng.uniform(80, 300, 20).astype(np.float32)
    served = np.concatenate(
        list(synthesize(Spectra(a, b, c, d, e, pitch), draw_noise(0, 20), (20,)))
    )
    pulses = torch.from_numpy(make_pulses(pitch))[None]
    trained = synthesize_batch([torch.from_numpy(part.T[None].copy()) for part in parts], pulses)[
        0
    ].numpy()
    assert trained.shape == served.shape == (20 * HOP,)
    assert np.abs(trained - served).max() < 1e-5 * max(1.0, np.abs(served).max())


@pytest.mark.thorough
def test_spectra_are_learnt_and_the_training_goes_on(
    tmp_path: Path, bank: SpeechBank, network: QuartetNetwork
) -> None:
    path = tmp_path / "spectrum.pt"
    trainer = SpectrumTrainer(path, bank, network, 1, PLAN)
    figures = [trainer.take_step() for _ in range(10)]
    assert figures[-1]["distance"] < 0.8 * figures[0]["distance"]
    assert "hinge" not in figures[5]
    assert "hinge" in figures[6]
    assert "deceit" not in figures[6]
    assert figures[-1].keys() >= {"hinge", "deceit", "features"}
    trainer.save()
    other = QuartetNetwork(1)
    again = SpectrumTrainer(path, bank, other, 1, PLAN)
    assert again.step == 10
    pairs = zip(other.spectrum.parameters(), network.spectrum.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


@pytest.mark.thorough
def test_prosody_is_learnt(tmp_path: Path, bank: SpeechBank, network: QuartetNetwork) -> None:
    silent = np.zeros(SPEAKER_SIZE, np.float32)
    held_out = [SpokenBy(HummingTeacher(130.0).read(HUM, LINE), 0, 0, silent)]
    plan = ProsodyPlan(rows=2, rate=2e-3)
    trainer = ProsodyTrainer(tmp_path / "prosody.pt", bank, network, 1, held_out, plan)
    before = trainer.judge()
    for _ in range(20):
        trainer.take_step()
    after = trainer.judge()
    assert after["held_out_duration"] < 0.5 * before["held_out_duration"]
    assert after["held_out_pitch"] < before["held_out_pitch"]


def test_the_distance_hears_what_differs() -> None:
    generator = torch.Generator().manual_seed(0)
    sound = torch.randn(2, 12_000, generator=generator) * 0.1
    distance = SpectrumDistance()
    assert distance(sound, sound) == pytest.approx(0.0, abs=1e-6)
    assert distance(sound * 0.9, sound) < distance(sound * 0.5, sound)


def test_a_discriminator_that_cannot_tell_loses_two() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(speakers=1, channels=2)
    sound, voices = torch.randn(1, 6000) * 0.1, torch.zeros(1, dtype=torch.long)
    verdicts = discriminator(sound, voices)
    assert measure_hinge(verdicts, verdicts).item() == pytest.approx(2.0, abs=0.2)


def test_the_rate_falls_at_the_end() -> None:
    assert TimeBudget(100.0, 10.0).find_scale() == 1.0
    assert TimeBudget(0.0, 10.0).find_scale() == pytest.approx(LAST_RATE, abs=1e-3)


def test_the_beginning_is_hibari() -> None:
    """Its own durations and pitch, but for its 8-bit arithmetic; the speaker changes nothing."""
    pytest.importorskip("onnx")
    from hibari import Hibari

    from cantata_layers.misaki.g2p import load_g2p
    from cantata_models.quartet.training.start import make_network
    from cantata_models.quartet.voice import plan_sentence

    text = "Hello world, how are you doing on this fine day?"
    phones = np.array(load_g2p(False).read(text)[0].phones, np.int64)
    network = make_network(2).eval()
    first, second = (
        plan_sentence(network, phones, network.find_speaker(voice), 1.0) for voice in (0, 1)
    )
    assert np.array_equal(first.pitch, second.pitch)
    theirs = Hibari()(text, 1.0, seed=0)
    assert first.inputs.encoded.shape[1] * HOP == pytest.approx(len(theirs), rel=0.02)
    voiced = first.pitch[first.pitch > 40]
    assert 140 < np.median(voiced) < 260
