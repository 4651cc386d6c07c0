"""How a request samples: what it says, and the published program's settings for the rest."""

from __future__ import annotations

import secrets
from typing import TypeVar

from cantata.contract.data.request import SamplingOptions, SpeechRequest
from cantata_models.moss_tts.config.shared import MossDefaults
from cantata_models.moss_tts.request_options import MossOptions

T = TypeVar("T")


def get_sampling(
    request: SpeechRequest, options: MossOptions, defaults: MossDefaults
) -> SamplingOptions:
    """Return the settings of all three levels.

    Temperature 0 makes the choice to stop greedy too, unless it has a temperature of its own.
    Without a seed each call draws one.
    """
    audio, stop = defaults.audio, defaults.stop
    temperature = _given(request.temperature, audio.temperature)
    penalty = _given(options.repetition_penalty, defaults.repetition_penalty)
    return SamplingOptions(
        seed=secrets.randbits(63) if request.seed is None else request.seed,
        temperature=temperature,
        top_k=_given(options.top_k, audio.top_k),
        top_p=_given(options.top_p, audio.top_p),
        repetition_penalty=penalty,
        residual_repetition_penalty=penalty,
        stop_temperature=_given(options.text_temperature, stop.temperature if temperature else 0.0),
        stop_top_k=_given(options.text_top_k, stop.top_k),
        stop_top_p=_given(options.text_top_p, stop.top_p),
    )


def _given(value: T | None, default: T) -> T:
    return default if value is None else value
