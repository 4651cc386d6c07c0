"""How well the mark in samples is found, how often it is seen where there is none, what it costs.

    python -m cantata_bench.watermark FILES MODEL

The voices of a model that needs no server speak; each file is cut to 3 s after it went through a
codec.
"""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import av
import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.contract.data.request import SpeechRequest
from cantata.pipeline.local import find_local_model
from cantata.watermark.detection import THRESHOLD, extract_details, find_mark, score_mark
from cantata.watermark.marker import Marker
from cantata.watermark.pattern import draw_signs

Sound = NDArray[np.float32]
"""[N, 1]."""

CUT_S = 3
CHUNK = 1_920
OTHER_KEYS = 40
"""Marks that are looked for, in vain, in each unmarked file."""
_SENTENCES = Path(__file__).parent / "voice_quality" / "sentences.tsv"
_HEARD_HZ = 16_000


async def speak(count: int, name: str) -> AsyncIterator[tuple[Sound, int]]:
    """Sentences in turn by all embedded voices, of 3 s and more, and their sample rate in Hz."""
    model = find_local_model(name)
    assert model is not None
    lines = [line.split("\t")[1] for line in _SENTENCES.read_text("utf-8").splitlines()]
    number = made = 0
    while made < count:
        voice, text = ("clara", "ben", "ruby", "ewan")[number % 4], lines[number // 4 % len(lines)]
        parts = model.plan(SpeechRequest(text, voice, seed=number))
        if not number:
            model.load()
        sound = np.concatenate([chunk.samples async for chunk in model.speak(parts)])
        number += 1
        if len(sound) >= CUT_S * model.sample_rate:
            made += 1
            yield sound, model.sample_rate


def send(sound: Sound, rate: int, container: str, codec: str, bit_rate: int) -> Sound:
    """The sound after a codec, at 16 kHz."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as written:
        stream = written.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        stream.bit_rate = bit_rate
        samples = (np.clip(sound, -1, 1) * 32767).astype(np.int16).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(samples, "s16", "mono")
        frame.sample_rate = rate
        written.mux(stream.encode(frame))
        written.mux(stream.encode(None))
    file.seek(0)
    with av.open(file, "r") as read:
        resampler = av.AudioResampler("flt", "mono", _HEARD_HZ)
        frames: list[Sound] = [
            one.to_ndarray().astype(np.float32)
            for part in read.decode(audio=0)
            for one in resampler.resample(part)
        ]
    return np.concatenate(frames, axis=1).T


WAYS: dict[str, Callable[[Sound, int], Sound]] = {
    "16 kHz": lambda sound, rate: soxr.resample(sound, rate, _HEARD_HZ),
    "MP3 64 kbit/s": lambda sound, rate: send(sound, rate, "mp3", "libmp3lame", 64_000),
    "Opus 24 kbit/s": lambda sound, rate: send(sound, rate, "ogg", "libopus", 24_000),
}


async def measure(count: int, name: str) -> None:
    """Print the figures."""
    key, rng = draw_signs(b"bench"), np.random.default_rng(0)
    others = [draw_signs(b"other %d" % number) for number in range(OTHER_KEYS)]
    scores: dict[str, list[float]] = {way: [] for way in WAYS}
    null: list[float] = []
    seconds = cpu_s = 0.0
    async for sound, rate in speak(count, name):
        began, marker = time.process_time(), Marker(key, rate, 1)
        pieces = [sound[at : at + CHUNK] for at in range(0, len(sound), CHUNK)]
        marked = np.concatenate([marker.feed(piece) for piece in pieces])
        cpu_s, seconds = cpu_s + time.process_time() - began, seconds + len(sound) / rate
        at = rng.integers(0, len(sound) * _HEARD_HZ // rate - CUT_S * _HEARD_HZ + 1)
        cut = slice(at, at + CUT_S * _HEARD_HZ)
        for way, sent in WAYS.items():
            scores[way].append(find_mark(sent(marked, rate)[cut], _HEARD_HZ, key).score)
        plain = list(WAYS.values())[len(null) // OTHER_KEYS % len(WAYS)](sound, rate)[cut]
        details = extract_details(plain, _HEARD_HZ)
        null += [score_mark(details, other) for other in others]
    for way, found in scores.items():
        share = np.mean(np.array(found) >= THRESHOLD)
        print(
            f"{way}: found {share:.2%} of {len(found)}, least {min(found):.1f}, "
            f"1 in 100 below {np.quantile(found, 0.01):.1f}, median {np.median(found):.1f}"
        )
    missed = np.array(null)
    beta = missed.std() * np.sqrt(6) / np.pi
    gumbel = 1 - np.exp(-np.exp(-(THRESHOLD - missed.mean() + np.euler_gamma * beta) / beta))
    print(
        f"unmarked: {np.sum(missed >= THRESHOLD)} of {len(missed)} above {THRESHOLD}, "
        f"greatest {missed.max():.2f}, mean {missed.mean():.2f}, deviation {missed.std():.2f}, "
        f"Gumbel {gumbel:.1e}"
    )
    print(f"marking: {cpu_s / seconds * 1000:.1f} ms of CPU for a second of sound")


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]), sys.argv[2]))
