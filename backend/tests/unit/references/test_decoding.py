"""Untrusted sound files: what is read, what is rejected, and what they may cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidAudio
from cantata.contract.data.request import ReferenceAudio
from cantata.references.decoding import decode
from sounds import humming, muxed, sound_file, wav, with_header, with_picture


def measure_tone(reference: ReferenceAudio) -> float:
    """Hz of the loudest part."""
    spectrum = np.abs(np.fft.rfft(reference.mono[: reference.sample_rate]))
    return float(spectrum.argmax())


@pytest.mark.parametrize(
    ("file", "rate", "channels"),
    [
        (wav(rate=8_000), 8_000, 1),
        (wav(rate=44_100), 44_100, 1),
        (wav(rate=96_000, channels=2), 48_000, 2),
        (wav(rate=192_000), 48_000, 1),
        (wav(channels=2), 24_000, 2),
        (wav(channels=3), 24_000, 1),
        (wav(rate=192_000, channels=8), 48_000, 1),
        *(
            (sound_file(humming(2), subtype=subtype), 24_000, 1)
            for subtype in ("PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
        ),
        (sound_file(humming(2), kind="FLAC"), 24_000, 1),
        (sound_file(humming(2), kind="OGG", subtype="VORBIS"), 24_000, 1),
        (sound_file(humming(2, 48_000), 48_000, kind="OGG", subtype="OPUS"), 48_000, 1),
        (sound_file(humming(2), kind="MP3"), 24_000, 1),
        (muxed("webm", "libopus"), 48_000, 1),
        (muxed("ipod", "aac"), 48_000, 1),
        (muxed("mp4", "aac"), 48_000, 1),
        (muxed("adts", "aac"), 48_000, 1),
        (with_picture(sound_file(humming(2), kind="FLAC"), 500), 24_000, 1),
    ],
)
def test_every_format_keeps_its_rate_to_48_khz_and_its_channels(
    file: bytes, rate: int, channels: int
) -> None:
    reference = decode(file, "hello", "ref_audio")
    assert reference.sample_rate == rate
    assert reference.transcript == "hello"
    assert reference.samples.dtype == np.float32
    assert reference.samples.shape[1] == channels
    assert len(reference.samples) / rate == pytest.approx(2, abs=0.0625)
    assert np.abs(reference.samples).max() == pytest.approx(0.3, abs=0.16)
    assert measure_tone(reference) == pytest.approx(220, abs=2)


@pytest.mark.parametrize("channels", [3, 8])
def test_more_than_two_channels_are_averaged(channels: int) -> None:
    one_side = humming(2, channels=channels)
    one_side[:, 1:] = 0
    reference = decode(sound_file(one_side, subtype="FLOAT"), None, "p")
    np.testing.assert_allclose(reference.samples, humming(2) / channels, atol=1e-4)


def test_two_channels_stay_apart() -> None:
    stereo = humming(2, 44_100, channels=2)
    stereo[:, 1] *= -0.5
    reference = decode(sound_file(stereo, 44_100, subtype="FLOAT"), None, "p")
    np.testing.assert_allclose(reference.samples, stereo, atol=1e-4)
    np.testing.assert_allclose(reference.mono, stereo[:, 0] / 4, atol=1e-4)


def test_the_first_15_seconds_are_used() -> None:
    sound = humming(20)
    sound[15 * 24_000 :] *= -1
    samples = decode(sound_file(sound, subtype="FLOAT"), None, "p").samples
    np.testing.assert_allclose(samples, humming(15), atol=1e-4)


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
    (lambda: with_picture(sound_file(humming(0.4), kind="FLAC"), 7_000), "0.40 s long"),
]

DECODE = """
import resource, sys
from cantata.contract.data.errors import InvalidAudio
from cantata.contract.data.request import ReferenceAudio
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
        (with_header(wav(), 24, "<I", 400_000), "sample rate of 400000 Hz"),
        (with_header(wav(), 24, "<I", 100), "sample rate of 100 Hz"),
    ],
)
def test_unsupported_shapes_are_rejected(file: bytes, says: str) -> None:
    with pytest.raises(InvalidAudio, match=says):
        decode(file, None, "p")


def test_decoders_beyond_the_list_are_not_opened() -> None:
    adpcm = sound_file(humming(2), subtype="IMA_ADPCM")
    with pytest.raises(InvalidAudio, match="has an unsupported codec"):
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
