"""What the embedded voices make of sentences: files, judged by the text and the teachers alone."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median

import av
import numpy as np
import pytest

from cantata_bench.asr import word_error_rate
from cantata_layers.speaker_features import Samples, speaker_vector
from timed import timed

from .conftest import KNOWN
from .judges import speech, waveform
from .server import Server

FORMATS = {"pcm": 24_000, "flac": 24_000, "mp3": 24_000, "aac": 24_000, "opus": 48_000}
"""Besides WAV, with the rate of the decoded file."""
LOSSY = ("mp3", "aac", "opus")
FORMAT_SENTENCE = 1
AT_A_TIME = 2
"""Requests; none changes another's samples (`test_concurrency.py`)."""
MAX_POINTS_WORSE = 2.0
"""Than the card's word error rate, over all voices: 13 words of 640."""
MAX_POINTS_WORSE_ONE_VOICE = 4.0

pytestmark = [pytest.mark.e2e, pytest.mark.level1, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Reading:
    """One sentence as a file."""

    sentence: str
    voice: str
    sound: Samples
    sample_rate: int
    took_s: float

    @property
    def duration_s(self) -> float:
        return len(self.sound) / self.sample_rate

    def faults(self, *, lossy: bool = False) -> list[str]:
        """The findings of every judge but the recognizer."""
        heard = (self.sentence, self.voice, self.sound, self.sample_rate)
        return [
            *waveform.faults(self.sound, self.sample_rate, lossy=lossy),
            *speech.faults(*heard),
        ]


@pytest.fixture(scope="module", params=[KNOWN])
def model(request: pytest.FixtureRequest) -> str:
    """The embedded voice: the only one whose teachers' readings are known."""
    return str(request.param)


@pytest.fixture(scope="module")
def readings(server: Server, pytestconfig: pytest.Config) -> Mapping[str, Sequence[Reading]]:
    """By voice: sentences that no training saw, and of which the teachers' readings are known; with
    `--short` each fourth."""
    sentences = speech.short_form()[:: 4 if pytestconfig.getoption("short") else 1]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return {
            voice: list(pool.map(partial(read, server, voice=voice), sentences))
            for voice in list_voices(server)
        }


def list_voices(server: Server) -> list[str]:
    """The embedded model's."""
    voices = server.get("/v1/audio/voices").json()["voices"]
    return [voice["id"] for voice in voices if voice["model"] == KNOWN]


def read(server: Server, sentence: str, voice: str, sound_format: str = "wav") -> Reading:
    asked = time.perf_counter()
    answer = server.speech(input=sentence, voice=voice, response_format=sound_format)
    took_s = time.perf_counter() - asked
    assert answer.status_code == 200, answer.text
    return Reading(sentence, voice, *decoded(answer.content, sound_format), took_s)


def decoded(data: bytes, sound_format: str) -> tuple[Samples, int]:
    if sound_format == "pcm":
        samples = np.frombuffer(data, dtype="<i2").astype(np.float32)
        return samples / np.float32(32768), FORMATS["pcm"]
    with av.open(io.BytesIO(data), "r") as file:
        frames = list(file.decode(audio=0))
    # WAV and FLAC are decoded to integers of 16 bits, the others to floats.
    rows = [np.atleast_2d(frame.to_ndarray())[0] for frame in frames]
    scale = {"s16": 32768.0, "s16p": 32768.0}.get(frames[0].format.name, 1.0)
    return np.concatenate(rows).astype(np.float32) / np.float32(scale), frames[0].sample_rate


@timed(one_sided=True)
def test_files_are_made_faster_than_they_play(server: Server, figures: Callable[..., None]) -> None:
    sentence = speech.short_form()[0]
    for voice in list_voices(server):
        reading = read(server, sentence, voice)
        rtf = reading.took_s / reading.duration_s
        figures(test="alone", voice=voice, RTF=f"{rtf:.3f}")
        assert rtf < 1.0, voice


def test_the_sample_rate_is_the_models(
    readings: Mapping[str, Sequence[Reading]], model: str, server: Server
) -> None:
    models = {one["id"]: one for one in server.get("/v1/audio/models").json()["models"]}
    rates = {reading.sample_rate for of_voice in readings.values() for reading in of_voice}
    assert rates == {models[model]["sample_rate"]}


def test_no_file_has_what_speech_has_not(readings: Mapping[str, Sequence[Reading]]) -> None:
    """Offset, holes, clicks, clipping, repetition, a cut end, a wrong length, level or voice."""
    found = {
        f"{voice}: {reading.sentence}": faults
        for voice, of_voice in readings.items()
        for reading in of_voice
        if (faults := reading.faults())
    }
    assert found == {}


def test_each_voice_keeps_its_pace_and_ends_in_silence(
    readings: Mapping[str, Sequence[Reading]],
) -> None:
    """Medians are narrower than what one sentence may do."""
    for voice, of_voice in readings.items():
        ratios = [speech.duration_ratio(one.sentence, voice, one.duration_s) for one in of_voice]
        least, most = speech.USUAL_DURATION_RATIO
        assert least < median(ratios) < most, f"{voice} takes {median(ratios):.3f} of the time"
        tail_s = median(waveform.tail_s(one.sound, one.sample_rate) for one in of_voice)
        assert tail_s >= waveform.MIN_USUAL_TAIL_S, f"{voice} ends with {tail_s:.3f} s of silence"


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("sound_format", FORMATS)
def test_every_format_has_the_same_speech(
    server: Server, readings: Mapping[str, Sequence[Reading]], sound_format: str
) -> None:
    """Judged as the WAV files are; the lossless ones are also compared with them."""
    lossy = sound_format in LOSSY
    wavs = [of_voice[FORMAT_SENTENCE] for of_voice in readings.values()]
    again = partial(read, server, wavs[0].sentence, sound_format=sound_format)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        all_found = list(pool.map(again, readings))
    for voice, wav, found in zip(readings, wavs, all_found, strict=True):
        assert found.sample_rate == FORMATS[sound_format]
        faults = found.faults(lossy=lossy)
        assert not faults, f"{voice}: {'; '.join(faults)}"
        if not lossy:
            np.testing.assert_array_equal(found.sound, wav.sound)


@pytest.mark.thorough
def test_sentences_are_understood_as_the_card_says(
    readings: Mapping[str, Sequence[Reading]], model: str, figures: Callable[..., None]
) -> None:
    errors, limits = [], []
    for voice, of_voice in readings.items():
        said = [reading.sentence for reading in of_voice]
        heard = [speech.transcribe(one.sound, one.sample_rate) for one in of_voice]
        errors.append(100 * word_error_rate(said, heard))
        limits.append(speech.card_wer(voice))
        figures(
            model=model,
            voice=voice,
            sentences=len(of_voice),
            seconds=f"{sum(reading.duration_s for reading in of_voice):.1f}",
            level=f"{np.mean([speech.loudness_db(one.sound) for one in of_voice]):.1f} dB",
            offset=f"{max(abs(float(one.sound.mean())) for one in of_voice):.4f}",
            WER=f"{errors[-1]:.1f}% (card: {limits[-1]:.1f}%)",
        )
        assert errors[-1] <= limits[-1] + MAX_POINTS_WORSE_ONE_VOICE, (voice, heard)
    assert np.mean(errors) <= np.mean(limits) + MAX_POINTS_WORSE


def pitch_hz(samples: Samples, sample_rate: int) -> float:
    return float(2 ** speaker_vector(samples, sample_rate)[-2])


def test_a_reference_recording_is_followed(server: Server, model: str) -> None:
    """The reference is a voice that plays a sixth faster, so that no stock voice sounds like it."""
    models = {one["id"]: one for one in server.get("/v1/audio/models").json()["models"]}
    if not models[model]["capabilities"]["references"]:
        pytest.skip(f"{model} follows no recording")
    text = "We need a bigger box for all of these books, and a better place to keep them."

    def spoken(**fields: object) -> Samples:
        answer = server.speech(input=text, response_format="pcm", **fields)
        assert answer.status_code == 200, answer.text
        return np.frombuffer(answer.content, dtype="<i2").astype(np.float32) / np.float32(32768)

    faster = round(24_000 * 7 / 6)
    reference = server.speech(input=text, voice="clara", response_format="wav").content
    played = bytearray(reference)
    played[24:28] = faster.to_bytes(4, "little")  # WAV's sample rate
    data = "data:audio/wav;base64," + base64.b64encode(played).decode()
    clara = spoken(voice="clara")
    stock, wanted = pitch_hz(clara, 24_000), pitch_hz(clara, faster)
    followed = pitch_hz(spoken(voice="clara", ref_audio=data), 24_000)
    assert abs(np.log2(followed / wanted)) < abs(np.log2(stock / wanted)) / 2
