"""Untrusted sound files: what is read, what is rejected, and what they may cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidAudio
from cantata.references.decoding import decode
from sounds import humming, muxed, sound_file, wav, with_header, with_picture


def tone_of(samples: np.ndarray) -> float:  # type: ignore[type-arg]
    """Hz of the loudest part."""
    spectrum = np.abs(np.fft.rfft(samples[:24_000]))
    return float(spectrum.argmax())


@pytest.mark.parametrize(
    "file",
    [
        wav(rate=8_000),
        wav(rate=44_100),
        wav(rate=192_000),
        wav(channels=2),
        wav(channels=8),
        *(
            sound_file(humming(2), subtype=subtype)
            for subtype in ("PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
        ),
        sound_file(humming(2), kind="FLAC"),
        sound_file(humming(2), kind="OGG", subtype="VORBIS"),
        sound_file(humming(2, 48_000), 48_000, kind="OGG", subtype="OPUS"),
        sound_file(humming(2), kind="MP3"),
        muxed("webm", "libopus"),
        muxed("ipod", "aac"),
        muxed("mp4", "aac"),
        muxed("adts", "aac"),
        with_picture(sound_file(humming(2), kind="FLAC"), 500),
    ],
)
def test_every_format_becomes_24_khz_mono(file: bytes) -> None:
    reference = decode(file, "hello", "ref_audio")
    assert reference.sample_rate == 24_000
    assert reference.transcript == "hello"
    assert reference.samples.dtype == np.float32
    assert reference.samples.ndim == 1
    assert len(reference.samples) == pytest.approx(48_000, abs=1_500)
    assert np.abs(reference.samples).max() == pytest.approx(0.3, abs=0.16)
    assert tone_of(reference.samples) == pytest.approx(220, abs=2)


def test_channels_are_averaged() -> None:
    one_side = humming(2, channels=2)
    one_side[:, 1] = 0
    samples = decode(sound_file(one_side, subtype="FLOAT"), None, "p").samples
    np.testing.assert_allclose(samples, humming(2)[:, 0] / 2, atol=1e-4)


def test_the_first_15_seconds_are_used() -> None:
    sound = humming(20)
    sound[15 * 24_000 :] *= -1
    samples = decode(sound_file(sound, subtype="FLOAT"), None, "p").samples
    np.testing.assert_allclose(samples, humming(15)[:, 0], atol=1e-4)


def test_a_header_that_lies_about_its_length_changes_nothing() -> None:
    file = sound_file(humming(2), subtype="FLOAT")
    data = file.index(b"data") + 4
    for size in (0xFFFFFFFF, 0x7FFFFFFF):
        assert len(decode(with_header(file, data, "<I", size), None, "p").samples) == 48_000


def silence(seconds: float, rate: int, channels: int) -> bytes:
    """A small file of much sound."""
    sound = np.broadcast_to(np.zeros((1, channels), np.float32), (round(seconds * rate), channels))
    return sound_file(sound, rate, kind="FLAC")


BOMBS: list[tuple[Callable[[], bytes], str]] = [
    (lambda: silence(20 * 60, 24_000, 1), "longer than 60 s"),
    (lambda: silence(61, 192_000, 8), "longer than 60 s"),
    (lambda: with_picture(sound_file(humming(0.5), kind="FLAC"), 7_000), "0.50 s long"),
]

DECODE = """
import resource, sys
from cantata.contract.data.errors import InvalidAudio
from cantata.references.decoding import decode

data = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decode(data, None, "p")
except InvalidAudio as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(("make", "says"), BOMBS)
def test_bombs_take_little_memory(make: Callable[[], bytes], says: str) -> None:
    # The peak of a process that does nothing else.
    child = subprocess.run(
        [sys.executable, "-c", DECODE], input=make(), capture_output=True, check=True
    )
    message, grown_mib = child.stdout.decode().splitlines()
    assert says in message
    assert int(grown_mib) < 64


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (with_header(wav(), 22, "<H", 9), "9 channels"),
        (with_header(wav(), 24, "<I", 400_000), "400000 samples per second"),
        (with_header(wav(), 24, "<I", 100), "100 samples per second"),
    ],
)
def test_unsupported_shapes_are_rejected(file: bytes, says: str) -> None:
    with pytest.raises(InvalidAudio, match=says):
        decode(file, None, "p")


def test_decoders_beyond_the_list_are_not_opened() -> None:
    adpcm = sound_file(humming(2), subtype="IMA_ADPCM")
    with pytest.raises(InvalidAudio, match="has a codec that is not read"):
        decode(adpcm, None, "p")


@pytest.fixture(scope="module")
def whole_files() -> list[bytes]:
    files = [sound_file(humming(1.5), kind=kind) for kind in ("WAV", "FLAC", "OGG", "MP3")]
    return [*files, muxed("webm", "libopus", 1.5), muxed("mp4", "aac", 1.5)]


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files_are_rejected_or_read_without_a_crash(
    whole_files: list[bytes], seed: int
) -> None:
    random = np.random.default_rng(seed)
    for file in whole_files:
        data = np.frombuffer(file, np.uint8).copy()
        hit = random.integers(4, len(data), size=random.integers(1, 60))
        data[hit] = random.integers(0, 256, size=len(hit))
        cut = int(random.integers(len(data) // 2, len(data) + 1))
        try:
            samples = decode(data.tobytes()[:cut], None, "p").samples
        except InvalidAudio:
            continue
        assert np.isfinite(samples).all()
        assert np.abs(samples).max() <= 1
