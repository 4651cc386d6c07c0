"""How a request's speech is sampled."""

from __future__ import annotations

from cantata.contract.data.request import SamplingOptions
from cantata_models.qwen3_omni.config.talker import TalkerSampling


def speech_sampling(defaults: TalkerSampling, seed: int, *, greedy: bool) -> SamplingOptions:
    """Return the checkpoint's settings for both levels of a frame.

    Args:
        defaults: of the checkpoint.
        seed: of the draws.
        greedy: take the best code at both levels; the penalty of repetition stays.
    """
    first, residual = defaults.first, defaults.residual
    return SamplingOptions(
        seed=seed,
        temperature=0.0 if greedy else first.temperature,
        top_k=first.top_k,
        top_p=first.top_p,
        repetition_penalty=defaults.repetition_penalty,
        residual_temperature=0.0 if greedy else residual.temperature,
        residual_top_k=residual.top_k,
        residual_top_p=residual.top_p,
    )
