"""The decoder's training losses."""

from __future__ import annotations

import torch

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.training.losses import ListenerLoss, SoundLoss
from cantata_models.solo.training.phone_classifier import PhoneClassifier

CONFIG = SoloConfig()
SAMPLES = 9_720
"""Not a whole number of slots, because of the decoder's lag."""


def sounds() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return 0.1 * torch.randn(2, SAMPLES), 0.1 * torch.randn(2, SAMPLES)


def test_the_same_sound_costs_nothing() -> None:
    sound, other = sounds()
    loss = SoundLoss(PhoneClassifier(CONFIG), CONFIG.codec.sample_rate)
    same, figures = loss.compare(sound, sound)
    assert same.item() < 1e-5
    assert set(figures) == {"spectral", "heard"}
    different, figures = loss.compare(other, sound)
    assert different.item() > 0.1
    assert all(value > 0 for value in figures.values())


def test_the_sound_learns_and_the_listener_does_not() -> None:
    sound, other = sounds()
    listener = ListenerLoss(PhoneClassifier(CONFIG))
    torch.autograd.backward(listener(other.requires_grad_(), sound))
    assert other.grad is not None
    assert other.grad.abs().sum() > 0
    assert not any(parameter.requires_grad for parameter in listener.parameters())


def test_another_phone_costs_more_than_another_noise() -> None:
    """Even to an untrained listener, a tone in place of noise is another phone. More of the same
    noise is not."""
    sound, other = sounds()
    tone = 0.1 * torch.sin(torch.arange(SAMPLES) * 0.2).expand(2, -1)
    listener = ListenerLoss(PhoneClassifier(CONFIG))
    assert listener(tone, sound) > 2 * listener(other, sound)
