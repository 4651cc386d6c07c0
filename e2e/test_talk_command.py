"""`cantata talk` with the shipped models, a microphone that plays a recording, and a recorded
loudspeaker."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from .firefox import ended, null_sound
from .judges.speech import transcribe
from .server import Server, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "docs" / "voice" / "clara.mp3"
SAID = "home along the river after school"
RATE = 24_000
DEADLINE_S = 60.0
EAR, MOUTH = "ear", "mouth"
"""PulseAudio's devices: what the command records is what is played on the first."""
DEVICES = """
pcm.!default {{
  type asym
  playback.pcm {{ type pulse server "{sound}" device {mouth} }}
  capture.pcm {{ type pulse server "{sound}" device {ear}.monitor }}
}}
"""
LOUD = 600
"""Level of a sample of speech, of 32,768."""


@pytest.fixture
def sound(tmp_path: Path) -> Iterator[str]:
    if shutil.which("pulseaudio") is None or find_library("portaudio") is None:
        pytest.skip("no sound: apt-get install pulseaudio libasound2-plugins libportaudio2")
    folder = tmp_path / "pulse"
    folder.mkdir()
    with null_sound(folder, EAR, MOUTH) as address:
        yield address


class Recorder:
    """What the loudspeaker has played so far."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def samples(self) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
        return np.fromfile(self._path, "<i2")

    @property
    def loud_s(self) -> float:
        """Seconds until the last loud sample."""
        loud = np.flatnonzero(np.abs(self.samples.astype(int)) > LOUD)
        return (loud[-1] - loud[0]) / RATE if len(loud) else 0.0


@contextmanager
def recorded(sound: str, path: Path) -> Iterator[Recorder]:
    command = ["parec", f"--server={sound}", f"--device={MOUTH}.monitor", f"--rate={RATE}"]
    form = ["--channels=1", "--format=s16le", "--raw", str(path)]
    with (path.parent / "parec.log").open("wb") as log, ended([*command, *form], {}, stderr=log):
        wait_until(path.exists, DEADLINE_S, "the loudspeaker is recorded")
        yield Recorder(path)


def ask(sound: str, folder: Path) -> None:
    """Say the recording into the microphone, and then nothing."""
    question = folder / "question.wav"
    if not question.exists():
        import soundfile

        samples, rate = soundfile.read(RECORDING, dtype="int16")
        soundfile.write(question, samples, rate)
    command = ["paplay", f"--server={sound}", f"--device={EAR}", str(question)]
    subprocess.run(command, check=True, timeout=DEADLINE_S)


def read_until(said: str, stream: IO[str]) -> str:
    """The line that has it."""
    for line in stream:
        if said in line:
            return line
    raise AssertionError(f"the command ended without {said!r}")


def test_a_conversation_is_heard_answered_interrupted_and_kept(
    server: Server, sound: str, tmp_path: Path
) -> None:
    (tmp_path / "asound.conf").write_text(
        DEVICES.format(sound=sound, ear=EAR, mouth=MOUTH), encoding="utf-8"
    )
    kept = tmp_path / "said.md"
    keys, stdin = pty.openpty()
    command = [sys.executable, "-m", "cantata", "talk", "--server", server.url]
    with (
        recorded(sound, tmp_path / "mouth.raw") as mouth,
        subprocess.Popen(
            [*command, "--save", str(kept)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ALSA_CONFIG_PATH": str(tmp_path / "asound.conf")},
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            first = read_until("Listening", process.stderr)
            assert first == "Listening to default. Enter interrupts, Ctrl-C ends.\n"
            ask(sound, tmp_path)
            assert SAID in read_until("> ", process.stdout)
            assert SAID in read_until("You said", process.stdout)
            # The microphone is deaf until the answer was heard; a question meanwhile is not one.
            wait_until(lambda: mouth.loud_s > 2.5, DEADLINE_S, "the answer is heard")
            wait_until(lambda: ends(mouth), DEADLINE_S, "the answer ends")
            whole_s = mouth.loud_s
            assert "river" in transcribe((mouth.samples / 32768).astype(np.float32), RATE)
            ask(sound, tmp_path)
            wait_until(lambda: mouth.loud_s > whole_s + 1, DEADLINE_S, "the next answer begins")
            begun = mouth.loud_s
            os.write(keys, b"\n")
            wait_until(lambda: ends(mouth), DEADLINE_S, "the interrupted answer ends")
            assert mouth.loud_s - begun < whole_s - 1.5
        finally:
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=DEADLINE_S)
            os.close(keys)
            os.close(stdin)
    assert process.returncode == 0, told
    text = kept.read_text(encoding="utf-8")
    assert text.count("## You") == 2
    assert text.count(SAID) >= 2


def ends(mouth: Recorder) -> bool:
    """Whether the last second was silent."""
    last = mouth.samples[-RATE:]
    return len(last) == RATE and not np.any(np.abs(last.astype(int)) > LOUD)
