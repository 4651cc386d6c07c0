"""The mark in samples: found after codecs and cuts, by its key alone, and in nothing else."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray
from typer.testing import CliRunner

from cantata.api.server.server_config import ServerOptions, build_settings
from cantata.audio.encoding import open_encoder
from cantata.audio.formats import output_format
from cantata.cli.app import app
from cantata.contract.data.errors import ConfigError
from cantata.contract.service import Samples
from cantata.media.sound import SoundLimits, read_sound
from cantata.watermark.detection import THRESHOLD, find_mark, find_mark_in_file
from cantata.watermark.marker import Marker
from cantata.watermark.pattern import PUBLIC_KEY, draw_signs

VOICE = Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3"
RATE = 24_000
SIGNS = draw_signs(b"a key of this test")


def read(file: bytes) -> tuple[Samples, int]:
    sound = read_sound(file, SoundLimits(600, 600, "", float("inf")), "file")
    return sound.samples[:, :1], sound.sample_rate


@pytest.fixture(scope="module")
def voice() -> Samples:
    samples, rate = read(VOICE.read_bytes())
    resampled: NDArray[np.float32] = soxr.resample(samples, rate, RATE)
    return resampled[: 6 * RATE]


def encoded(samples: Samples, form: str, bit_rate: int) -> tuple[Samples, int]:
    container, codec = {"mp3": ("mp3", "libmp3lame"), "opus": ("ogg", "libopus")}[form]
    file = io.BytesIO()
    with av.open(file, "w", format=container) as written:
        stream = written.add_stream(codec, rate=RATE, layout="mono")
        assert isinstance(stream, av.AudioStream)
        stream.bit_rate = bit_rate
        whole = (np.clip(samples, -1, 1) * 32767).astype(np.int16).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(whole, "s16", "mono")
        frame.sample_rate = RATE
        written.mux(stream.encode(frame))
        written.mux(stream.encode(None))
    return read(file.getvalue())


def test_the_mark_survives_codecs_and_cuts_and_only_its_key_finds_it(voice: Samples) -> None:
    marked = Marker(SIGNS, RATE, 1).feed(voice)
    ways = {
        "untouched": (marked, RATE),
        "16 kHz": (soxr.resample(marked, RATE, 16_000), 16_000),
        "MP3": encoded(marked, "mp3", 64_000),
        "Opus": encoded(marked, "opus", 24_000),
        "softer": (marked * np.float32(0.1), RATE),
    }
    for way, (sound, rate) in ways.items():
        cut = sound[round(1.37 * rate) :][: 3 * rate]
        assert find_mark(cut, rate, SIGNS).found, way
        for other in (b"another key", PUBLIC_KEY):
            assert not find_mark(cut, rate, draw_signs(other)).found, way
    for start in (0, RATE, 2 * RATE):
        assert find_mark(voice[start : start + 3 * RATE], RATE, SIGNS).score < THRESHOLD


@pytest.mark.parametrize("rate", [16_000, 22_050, 44_100, 48_000])
def test_voices_of_other_rates(voice: Samples, rate: int) -> None:
    sound: Samples = soxr.resample(voice, RATE, rate)
    marked = Marker(SIGNS, rate, 1).feed(sound)
    assert find_mark(marked, rate, SIGNS).score > 1.3 * THRESHOLD
    loudness = np.sqrt(np.mean(marked**2) / np.mean(sound**2))
    assert 0.95 < loudness < 1.05


def test_a_stream_is_marked_as_a_whole_and_nothing_is_held_back(voice: Samples) -> None:
    stereo = np.concatenate((voice, voice[::-1]), axis=1)
    whole, streaming = Marker(SIGNS, RATE, 2).feed(stereo), Marker(SIGNS, RATE, 2)
    cuts = [0, 1, 2, 700, 1152, 1153, 5000, 40_000, 41_920, len(stereo)]
    pieces = [streaming.feed(stereo[a:b]) for a, b in pairwise(cuts)]
    assert [len(one) for one in pieces] == list(np.diff(cuts))
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-6)
    assert whole.dtype == np.float32


def test_utterances_that_follow_each_other_and_silence(voice: Samples) -> None:
    silence = np.zeros((RATE // 3, 1), np.float32)
    assert not Marker(SIGNS, RATE, 1).feed(silence).any()
    pieces = [Marker(SIGNS, RATE, 1).feed(voice[:100_000]), silence]
    pieces += [Marker(SIGNS, RATE, 1).feed(voice[20_000:130_000])]
    assert find_mark(np.concatenate(pieces), RATE, SIGNS).found
    for nothing in (silence, silence[:0], silence[:100]):
        assert find_mark(nothing, RATE, SIGNS).score == 0


def test_the_command_tells_whose_mark_it_is(voice: Samples, tmp_path: Path) -> None:
    path, key = tmp_path / "a.wav", tmp_path / "key"
    key.write_bytes(b"0123456789abcdef\n")
    soundfile.write(path, Marker(draw_signs(b"0123456789abcdef"), RATE, 1).feed(voice), RATE)
    told = CliRunner().invoke(app, ["verify", str(path), "--watermark-key", str(key)])
    assert "Its sound has this key's mark" in told.output
    assert "mark (" not in CliRunner().invoke(app, ["verify", str(path)]).output
    key.write_bytes(b"short")
    refused = CliRunner().invoke(app, ["verify", str(path), "--watermark-key", str(key)])
    assert refused.exit_code == 2
    assert find_mark_in_file(b"no sound", SIGNS) is None


def test_options_of_the_mark(tmp_path: Path) -> None:
    assert build_settings(ServerOptions(), "127.0.0.1").watermark_key is None
    assert build_settings(ServerOptions(watermark=True), "127.0.0.1").watermark_key == PUBLIC_KEY
    with pytest.raises(ConfigError, match="needs --watermark"):
        build_settings(ServerOptions(watermark_key=tmp_path / "key"), "127.0.0.1")


def test_a_marked_file_of_the_server_is_found(voice: Samples) -> None:
    encoder = open_encoder(output_format("mp3", RATE, 1, None))
    file = encoder.feed(Marker(SIGNS, RATE, 1).feed(voice)) + encoder.finish()
    mark = find_mark_in_file(file, SIGNS)
    assert mark is not None
    assert mark.found
