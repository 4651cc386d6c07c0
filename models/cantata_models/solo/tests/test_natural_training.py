"""The training of the codec with a source filter, on a hum."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata_models.solo.tests.test_filter_decoder import SMALL_FILTER
from cantata_models.solo.tests.test_natural_speech import HummingTeacher
from cantata_models.solo.training.losses import SpectralLoss
from cantata_models.solo.training.natural.bank import SpeechBank
from cantata_models.solo.training.natural.codec_training import (
    LAST_RATE,
    FilterCodecTrainer,
    TimeBudget,
    TrainingPlan,
    choose_rate,
)
from cantata_models.solo.training.natural.components import start_from_components
from cantata_models.solo.training.natural.copies import copy_speech
from cantata_models.solo.training.natural.filter_codec import (
    FilterCodec,
    export_codec,
    import_codec,
)
from cantata_models.solo.training.natural.fits import fit_frames, start_from_fits
from cantata_models.solo.training.natural.shards import write_shard
from cantata_models.solo.training.natural.teachers import ScriptLine
from cantata_models.solo.training.natural.voices import HEART

PLAN = TrainingPlan(
    rows=1,
    lead_frames=1,
    crop_frames=5,
    fit_batches=1,
    fit_steps=2,
    peak_rate=2e-3,
    warm_steps=5,
    mean_every=1,
    mean_decay=0.8,
)


@pytest.fixture
def bank(tmp_path: Path) -> SpeechBank:
    folder = tmp_path / "speech"
    reading = ScriptLine("", tuple(range(24)), 1.0, 0)
    spoken = [HummingTeacher(hertz).read(HEART, reading) for hertz in (110.0, 160.0, 230.0)]
    write_shard(folder / "hum.npz", spoken)
    bank = SpeechBank(folder, PLAN.frames)
    bank.refresh()
    return bank


def join_weights(codec: FilterCodec) -> torch.Tensor:
    """All of them in a row."""
    return torch.cat([parameter.detach().flatten() for parameter in codec.parameters()])


def test_the_beginning_knows_the_envelope(tmp_path: Path, bank: SpeechBank) -> None:
    """Without a step, a copy is about as loud as its original, in time and in frequency."""
    codec = FilterCodecTrainer(tmp_path, bank, PLAN, SMALL_FILTER).mean
    heard = bank.draw(np.random.default_rng(1), 3)
    mel = codec.encoder.heard.mel
    theirs = mel(heard.samples[:, : -codec.decoder.lag])
    loud = theirs > theirs.amax() - 2
    apart = (mel(codec.copy(heard)) - theirs)[loud]
    assert apart.abs().mean() < 1.0
    untaught = FilterCodec(SMALL_FILTER).eval()
    assert (mel(untaught.copy(heard)) - theirs)[loud].abs().mean() > 1.5 * apart.abs().mean()


def test_the_loss_falls(tmp_path: Path, bank: SpeechBank) -> None:
    trainer = FilterCodecTrainer(tmp_path, bank, PLAN, SMALL_FILTER)
    losses = [trainer.take_step()["spectral"] for _ in range(30)]
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    spoken = HummingTeacher(140.0).read(HEART, ScriptLine("", tuple(range(16)), 1.0, 0))
    copied = copy_speech(trainer.mean, spoken)
    assert copied.shape == spoken.samples.shape
    level = np.std(copied[4800:-4800]) / np.std(spoken.samples[4800:-4800] / 32768)
    assert 0.3 < level < 2


def test_a_resumed_training_is_the_same_training(tmp_path: Path, bank: SpeechBank) -> None:
    whole = FilterCodecTrainer(tmp_path / "whole", bank, PLAN, SMALL_FILTER)
    first = FilterCodecTrainer(tmp_path / "parts", bank, PLAN, SMALL_FILTER)
    for _ in range(2):
        whole.take_step()
        first.take_step()
    first.save()
    second = FilterCodecTrainer(tmp_path / "parts", bank, PLAN, SMALL_FILTER)
    assert second.progress.step == 2
    for _ in range(2):
        ours, theirs = whole.take_step(), second.take_step()
        assert ours == theirs
    assert torch.equal(join_weights(whole.codec), join_weights(second.codec))
    assert torch.equal(join_weights(whole.mean), join_weights(second.mean))


def test_a_training_begins_with_exported_weights(tmp_path: Path, bank: SpeechBank) -> None:
    trainer = FilterCodecTrainer(tmp_path / "one", bank, PLAN, SMALL_FILTER)
    trainer.take_step()
    path = tmp_path / "codec.safetensors"
    size = export_codec(trainer.mean, replace(trainer.progress, step=900), path)
    assert size < 2.2 * len(join_weights(trainer.mean)) + 20_000
    later = FilterCodecTrainer(tmp_path / "two", bank, PLAN, SMALL_FILTER, start=path)
    assert later.progress.step == later.progress.begun == 900
    torch.testing.assert_close(
        join_weights(later.codec), join_weights(trainer.mean), rtol=1e-3, atol=1e-6
    )
    assert choose_rate(PLAN, 900, 900) < 0.3 * choose_rate(PLAN, 905, 900)
    later.take_step()
    later.save()
    assert FilterCodecTrainer(tmp_path / "two", bank, PLAN, SMALL_FILTER).progress.step == 901
    with pytest.raises(RuntimeError, match="size mismatch"):
        import_codec(FilterCodec(replace(SMALL_FILTER, hop_channels=48)), path)


def test_a_run_ends_with_its_time_and_logs_what_the_judge_says(
    tmp_path: Path, bank: SpeechBank
) -> None:
    plan = replace(PLAN, judge_every=2, log_every=1)
    trainer = FilterCodecTrainer(tmp_path, bank, plan, SMALL_FILTER)
    heard = list[int]()

    def judge(codec: FilterCodec) -> dict[str, float]:
        heard.append(trainer.progress.step)
        return {"mos_hum": 2.5}

    trainer.run(TimeBudget(0.5, 0.2), judge)
    assert trainer.path.exists()
    lines = [
        json.loads(line)
        for line in (tmp_path / "filter_codec.jsonl").read_text().split("\n")
        if line
    ]
    assert [line["step"] for line in lines if "mos_hum" in line] == heard
    assert heard[-1] == trainer.progress.step
    rates = [line["rate"] for line in lines if "rate" in line]
    assert len(rates) == trainer.progress.step
    trainer.run(TimeBudget(-1.0), judge)
    assert trainer.progress.step == len(rates)


def test_the_rate_cools_at_the_end() -> None:
    budget = TimeBudget(seconds=100.0, cool_seconds=40.0)
    assert budget.find_scale() == 1
    assert TimeBudget(20.0, 40.0).find_scale() == pytest.approx((1 + LAST_RATE) / 2, abs=0.01)
    assert TimeBudget(0.0, 40.0).find_scale() == pytest.approx(LAST_RATE, abs=0.01)


def test_fitted_gains_come_nearer_than_components(bank: SpeechBank) -> None:
    """Each fit, and what a linear map keeps of all fits."""
    torch.manual_seed(1)
    codec, spectral = FilterCodec(SMALL_FILTER).eval(), SpectralLoss(24_000)
    heard = [bank.draw(np.random.default_rng(seed), 3) for seed in range(4)]
    start_from_components(
        codec.encoder, codec.decoder, torch.cat([sound.samples for sound in heard])
    )
    fresh = bank.draw(np.random.default_rng(9), 3)

    def measure() -> float:
        return float(spectral(codec.copy(fresh), fresh.samples[:, : -codec.decoder.lag]))

    begun = measure()
    before = join_weights(codec)
    fitted = fit_frames(codec, heard, spectral, 8)
    assert torch.equal(join_weights(codec), before), "a fit changes no weights"
    assert start_from_fits(codec, fitted) < 1
    assert measure() < 0.9 * begun
