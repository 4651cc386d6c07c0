"""Puts a mark into sound as it streams: no sample is held back.

`mark_service` marks a service's sound, whoever asks for it and however it is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cantata.contract.chat_service import ChatModel
from cantata.contract.service import Run, Samples, SpeechChunk, SpeechModel
from cantata.contract.transcription_service import TranscriptionService
from cantata.watermark.pattern import DECIBELS, SLOT_S, SLOTS, Signs, compute_band_edges

_TAPS_S = 0.02
_SPECTRUM_S = 0.08
"""Resolution of the filters' design."""
_SOFT_EDGE = 0.15
"""Of a band's width; between two bands the gain changes as fast as this."""
_CROSSFADE = 0.25
"""Of a slot, in which its filter takes over from the one before."""


class Marker:
    """Marks one utterance. Each slot has a filter of minimum phase, so nothing is delayed.

    Args:
        sample_rate: Hz.
        channels: marked alike.
    """

    def __init__(self, signs: Signs, sample_rate: int, channels: int) -> None:
        self._signs = signs
        self._size = 1 << (round(_SPECTRUM_S * sample_rate) - 1).bit_length()
        self._gains = _shape_bands(sample_rate, self._size)
        self._taps = round(_TAPS_S * sample_rate)
        self._slot = round(SLOT_S * sample_rate)
        self._crossfade = round(_CROSSFADE * self._slot)
        self._past: NDArray[np.float64] = np.zeros((self._taps - 1, channels))
        self._position = 0
        self._filters: dict[int, NDArray[np.float64]] = {}

    def feed(self, samples: Samples) -> Samples:
        """[N, C] -> the same, marked. How the sound is cut into pieces changes nothing but the last
        bit of a float."""
        heard: NDArray[np.float64] = np.concatenate((self._past, samples))
        marked = np.empty_like(samples)
        done = 0
        while done < len(samples):
            slot, offset = divmod(self._position, self._slot)
            count = min(len(samples) - done, self._slot - offset)
            piece = heard[done : done + count + self._taps - 1]
            marked[done : done + count] = self._filter(piece, slot, offset, count)
            done += count
            self._position += count
        self._past = heard[len(heard) - self._taps + 1 :]
        return marked

    def _filter(
        self, piece: NDArray[np.float64], slot: int, offset: int, count: int
    ) -> NDArray[np.float64]:
        size = 1 << (len(piece) - 1).bit_length()
        spectrum = np.fft.rfft(piece, size, axis=0)

        def convolve(number: int) -> NDArray[np.float64]:
            response = np.fft.rfft(self._design(number % SLOTS), size)
            whole = np.fft.irfft(spectrum * response[:, None], size, axis=0)
            return whole[self._taps - 1 : self._taps - 1 + count]

        filtered = convolve(slot)
        fading = min(count, self._crossfade - offset)
        if slot and fading > 0:
            place = (np.arange(offset, offset + fading) + 0.5) / self._crossfade
            weight = (0.5 - 0.5 * np.cos(np.pi * place))[:, None]
            before = convolve(slot - 1)[:fading]
            filtered[:fading] = weight * filtered[:fading] + (1 - weight) * before
        return filtered

    def _design(self, slot: int) -> NDArray[np.float64]:
        """The filter of minimum phase with the slot's gains, by its folded cepstrum (Oppenheim and
        Schafer, Discrete-Time Signal Processing, 12.4)."""
        if slot not in self._filters:
            half = self._size // 2
            cepstrum = np.fft.irfft(self._signs[slot] @ self._gains, self._size)
            cepstrum[1:half] *= 2
            cepstrum[half + 1 :] = 0
            response = np.fft.irfft(np.exp(np.fft.rfft(cepstrum)), self._size)[: self._taps]
            ending = self._taps // 4
            response[-ending:] *= np.cos(np.linspace(0, np.pi / 2, ending)) ** 2
            self._filters[slot] = response
        return self._filters[slot]


def _shape_bands(sample_rate: int, size: int) -> NDArray[np.float64]:
    """Each band's gain over frequency, as a natural logarithm: [bands, size // 2 + 1]."""
    hz, edges = np.fft.rfftfreq(size, 1 / sample_rate), compute_band_edges()[:, None]
    low, high = edges[:-1], edges[1:]
    slope = _SOFT_EDGE * (high - low)
    rising, falling = (
        np.clip((hz - low) / slope + 0.5, 0, 1),
        np.clip((high - hz) / slope + 0.5, 0, 1),
    )
    gains: NDArray[np.float64] = rising * falling * (DECIBELS / 20 * np.log(10))
    return gains


def mark_service(service: TranscriptionService, signs: Signs) -> TranscriptionService:
    """The same service, with a mark in what its models say: 3 ms of this process's CPU for a second
    of sound."""
    return cast(TranscriptionService, _MarkedService(service, signs))


class _Marked:
    """Everything that is not overridden is the original's."""

    def __init__(self, original: Any, signs: Signs) -> None:
        self._original, self._signs = original, signs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _MarkedService(_Marked):
    @property
    def models(self) -> Mapping[str, SpeechModel]:
        return {name: self._find_speaker(one) for name, one in self._original.models.items()}

    @property
    def chat_models(self) -> Mapping[str, ChatModel]:
        return {name: self._find_answerer(one) for name, one in self._original.chat_models.items()}

    def get_model(self, name: str) -> SpeechModel:
        return self._find_speaker(self._original.get_model(name))

    def get_chat_model(self, name: str | None) -> ChatModel:
        return self._find_answerer(self._original.get_chat_model(name))

    def _find_speaker(self, model: SpeechModel) -> SpeechModel:
        return cast(SpeechModel, _MarkedModel(model, self._signs))

    def _find_answerer(self, model: ChatModel) -> ChatModel:
        return cast(ChatModel, _MarkedModel(model, self._signs)) if model.voices else model


class _MarkedModel(_Marked):
    @asynccontextmanager
    async def run(self, request: object, **options: Any) -> AsyncIterator[Run[Any]]:
        async with self._original.run(request, **options) as run:
            marker = Marker(self._signs, self._original.sample_rate, self._original.channels)
            events = (
                _mark(one, marker) if isinstance(one, SpeechChunk) else one async for one in run
            )
            yield replace(run, events=events)


def _mark(chunk: SpeechChunk, marker: Marker) -> SpeechChunk:
    return replace(chunk, samples=marker.feed(chunk.samples)) if len(chunk.samples) else chunk
