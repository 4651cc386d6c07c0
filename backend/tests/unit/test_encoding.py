"""Every format decodes to what was fed, whole, in time, at every rate."""

from __future__ import annotations

import io
import math
import wave
from dataclasses import replace

import av
import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

from cantata.audio.encoding import open_encoder
from cantata.audio.formats import FORMATS, output_format
from cantata.audio.pcm import to_s16
from cantata.contract.data.errors import InvalidRequest
from cantata.media.provenance import find_provenance, make_sound_tags

MODEL_RATE = 24_000
FRAME = 1920
"""80 ms, as a pipeline makes them."""
CODEC_DELAY_S = {"mp3": 0.2, "aac": 0.25}
"""What a codec without gapless tags may put around the sound, at its lowest rate."""
Samples = NDArray[np.float32]


def voiced(seconds: float, channels: int = 1) -> Samples:
    """A gliding harmonic sound with pauses, below 3.5 kHz; the second channel is quieter."""
    time = np.arange(round(seconds * MODEL_RATE)) / MODEL_RATE
    phase = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * time)) / MODEL_RATE
    sound = sum(np.sin(k * phase) / k for k in range(1, 18))
    sound = 0.25 * sound * np.clip(np.sin(2 * np.pi * 1.5 * time) + 0.5, 0, 1)
    return np.stack([sound, -0.5 * sound], axis=1)[:, :channels].astype(np.float32)


def encode(
    name: str, samples: Samples, sample_rate: int = MODEL_RATE, piece: int = FRAME
) -> list[bytes]:
    """The bytes of every piece, and those of the end."""
    encoder = open_encoder(output_format(name, MODEL_RATE, samples.shape[1], sample_rate))
    try:
        pieces = [encoder.feed(samples[i : i + piece]) for i in range(0, len(samples), piece)]
        return [*pieces, encoder.finish()]
    finally:
        encoder.close()


def decode(name: str, data: bytes, sample_rate: int, channels: int = 1) -> Samples:
    """[N, C] at the rate that was encoded; Opus decodes at 48 kHz whatever was put in."""
    if name == "pcm":
        return np.frombuffer(data, "<i2").reshape(-1, channels).astype(np.float32) / np.float32(
            32767
        )
    with av.open(io.BytesIO(data), "r") as file:
        stream = file.streams.audio[0]
        to_float = av.AudioResampler(format="fltp", layout=stream.layout, rate=stream.rate)
        frames = [f.to_ndarray() for frame in file.decode(stream) for f in to_float.resample(frame)]
        rate = stream.rate
    assert rate == (48_000 if name == "opus" else sample_rate)
    samples = np.concatenate(frames, axis=1).T
    return np.asarray(soxr.resample(samples, rate, sample_rate), np.float32)


def measure_delay(decoded: Samples, original: Samples, sample_rate: int) -> int:
    """Samples by which the decoded sound is late, by cross-correlation."""
    size = 1 << math.ceil(math.log2(len(decoded) + len(original)))
    spectrum = np.fft.rfft(decoded, size) * np.conj(np.fft.rfft(original, size))
    lags = np.fft.irfft(spectrum, size)[: round(0.3 * sample_rate)]
    return int(np.argmax(lags))


RATES = [
    (name, rate)
    for name, one in FORMATS.items()
    for rate in one.sample_rates or (8_000, 11_000, 16_000, 24_000, 44_100, 48_000)
]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("name", "sample_rate"), RATES)
def test_every_format_holds_the_whole_sound(name: str, sample_rate: int, channels: int) -> None:
    sound = voiced(1.2, channels)
    data = b"".join(encode(name, sound, sample_rate))
    decoded = decode(name, data, sample_rate, channels)
    expected = soxr.resample(sound, MODEL_RATE, sample_rate)
    assert decoded.shape[1] == channels
    extra_s = (len(decoded) - len(expected)) / sample_rate
    assert -0.001 <= extra_s <= CODEC_DELAY_S.get(name, 0.001)
    delay = measure_delay(decoded[:, 0], expected[:, 0], sample_rate)
    heard = decoded[delay : delay + len(expected)]
    for channel in range(channels):
        original = expected[: len(heard), channel]
        assert np.corrcoef(heard[:, channel], original)[0, 1] > 0.98
        assert np.std(heard[:, channel]) == pytest.approx(np.std(original), rel=0.1)


@pytest.mark.parametrize("name", ["flac", "wav", "pcm"])
def test_lossless_formats_hold_the_same_samples(name: str) -> None:
    sound = voiced(1.0)
    decoded = decode(name, b"".join(encode(name, sound)), MODEL_RATE)
    scale = 32767 if name == "pcm" else 32768
    np.testing.assert_array_equal(np.rint(decoded * scale), to_s16(sound))


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_leave_while_sound_is_made(name: str) -> None:
    pieces = encode(name, voiced(2.0))
    whole = sum(map(len, pieces))
    # By 240 ms of sound a decoder has something to play, and no codec lags by more.
    assert decode(name, b"".join(pieces[:3]), MODEL_RATE).shape[0] > 0
    sent = np.cumsum([len(piece) for piece in pieces]) / whole
    heard = np.arange(1, len(pieces) + 1) * FRAME / (2.0 * MODEL_RATE)
    assert np.all(sent[:-1] > heard[:-1] - 0.2)
    assert len(pieces[-1]) < 0.15 * whole


@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
@pytest.mark.parametrize("piece", [1, 479, 48_000])
def test_pieces_of_any_length_make_the_same_file(name: str, piece: int) -> None:
    sound = voiced(0.5)
    assert b"".join(encode(name, sound, piece=piece)) == b"".join(encode(name, sound))


@pytest.mark.parametrize("sample_rate", [8_000, 11_025, 44_100])
@pytest.mark.parametrize("channels", [1, 2])
def test_resampling_in_pieces_is_resampling_at_once(sample_rate: int, channels: int) -> None:
    sound = voiced(1.0, channels)
    sent = np.frombuffer(b"".join(encode("pcm", sound, sample_rate, 137)), "<i2")
    expected = to_s16(soxr.resample(sound, MODEL_RATE, sample_rate)).ravel()
    assert len(sent) == len(expected) == sample_rate * channels
    assert np.max(np.abs(sent.astype(int) - expected)) <= 1


def test_a_value_that_is_no_number_spoils_nothing_after_it() -> None:
    sound = voiced(1.0)
    sound[100] = np.nan
    sent = np.frombuffer(b"".join(encode("pcm", sound, 16_000)), "<i2")
    assert np.std(sent[8_000:]) > 100


def test_a_streamed_wav_is_read_by_libraries() -> None:
    sound = voiced(1.0)
    data = b"".join(encode("wav", sound, 16_000))
    read, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert (rate, len(read)) == (16_000, 16_000)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert file.readframes(16_000) == read.tobytes()


@pytest.mark.parametrize("name", ["wav", "flac"])
@pytest.mark.parametrize(("sample_rate", "channels"), [(24_000, 1), (16_000, 1), (48_000, 2)])
def test_a_whole_file_has_its_true_length(name: str, sample_rate: int, channels: int) -> None:
    output = output_format(name, 24_000, channels, sample_rate)
    encoder = open_encoder(output)
    file = bytearray()
    for _ in range(7):
        file += encoder.feed(np.zeros((1999, channels), np.float32))
    file += encoder.finish()
    head = encoder.encode_head(len(file))
    file[: len(head)] = head
    encoder.close()
    expected = round(7 * 1999 * sample_rate / 24_000)
    samples, rate = soundfile.read(io.BytesIO(bytes(file)), always_2d=True)
    assert (rate, samples.shape[1]) == (sample_rate, channels)
    assert abs(len(samples) - expected) <= 1
    if name == "wav":
        with wave.open(io.BytesIO(bytes(file))) as read:
            assert read.getnframes() == len(samples)


@pytest.mark.parametrize("name", FORMATS)
def test_silence_of_no_length_ends_cleanly(name: str) -> None:
    assert len(b"".join(encode(name, np.zeros((0, 1), np.float32)))) < 200


@pytest.mark.parametrize("name", FORMATS)
def test_an_encoder_may_be_closed_in_the_middle_and_twice(name: str) -> None:
    for _ in range(20):
        encoder = open_encoder(output_format(name, MODEL_RATE, 1, 16_000))
        encoder.feed(voiced(0.1))
        encoder.close()
        encoder.close()


@pytest.mark.parametrize(
    ("name", "model_rate", "sent"),
    [
        ("opus", 24_000, 24_000),
        ("opus", 44_100, 48_000),
        ("mp3", 96_000, 48_000),
        ("aac", 22_050, 22_050),
        ("pcm", 96_000, 96_000),
        ("flac", 44_100, 44_100),
    ],
)
def test_without_a_wish_the_rate_is_the_models_or_the_next(
    name: str, model_rate: int, sent: int
) -> None:
    assert output_format(name, model_rate, 1, None).sample_rate == sent


def test_rates_and_channels_that_a_format_lacks_are_rejected() -> None:
    with pytest.raises(InvalidRequest, match="8000, 12000, 16000, 24000, 48000") as rate:
        output_format("opus", MODEL_RATE, 1, 44_100)
    assert rate.value.param == "sample_rate"
    with pytest.raises(InvalidRequest, match="valid: wav, pcm") as channels:
        output_format("mp3", MODEL_RATE, 6, None)
    assert channels.value.param == "response_format"


@pytest.mark.parametrize("name", ["mp3", "opus", "flac", "aac", "wav", "pcm"])
def test_tags_come_first_and_change_no_sample(name: str) -> None:
    samples, plain = voiced(0.5), output_format(name, MODEL_RATE, 1, MODEL_RATE)
    files = []
    for output in (plain, replace(plain, tags=make_sound_tags("solo"))):
        encoder = open_encoder(output)
        file = bytearray(encoder.feed(samples) + encoder.finish())
        head = encoder.encode_head(len(file))
        file[: len(head)] = head
        encoder.close()
        files.append(bytes(file))
    untagged, tagged = files
    assert np.array_equal(decode(name, untagged, MODEL_RATE), decode(name, tagged, MODEL_RATE))
    if name != "pcm":
        assert 140 < len(tagged) - len(untagged) < 300
        found = find_provenance(tagged)
        assert (found.synthetic, found.digital_source_type) == (True, "trainedAlgorithmicMedia")
        assert (found.software or "").endswith(", solo")
    else:
        assert tagged == untagged
