"""`cantata transcribe --microphone` with the model that ships, PortAudio and ALSA, whose microphone
is a file: it is read as fast as the command can, and its last moment is repeated without end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import soundfile
import soxr
from typer.testing import CliRunner, Result

from cantata.cli.app import app

RECORDING = Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3"
SAID = "home along the river after school"
RATE = 44_100
"""What PortAudio calls such a device's own."""
QUIET_S = 2.0
FILE_AS_MICROPHONE = """
pcm.null {{ type null }}
pcm.!default {{
  type file
  slave.pcm null
  file /dev/null
  infile "{file}"
  format raw
}}
"""
NO_CARD = "pcm.!default { type hw card 99 }\n"

needs_portaudio = pytest.mark.skipif(
    find_library("portaudio") is None, reason="PortAudio is missing: apt install libportaudio2"
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["transcribe", *arguments])


@pytest.fixture
def alsa(tmp_path: Path) -> dict[str, str]:
    """An environment in which the microphone is a recording, and then silence."""
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    sound = soxr.resample(sound, rate, RATE)
    heard = np.concatenate([sound, np.zeros(int(QUIET_S * RATE), np.float32)])
    recorded, config = tmp_path / "microphone.raw", tmp_path / "asound.conf"
    (heard * 32767).astype("<i2").tofile(recorded)
    config.write_text(FILE_AS_MICROPHONE.format(file=recorded), encoding="utf-8")
    return {**os.environ, "ALSA_CONFIG_PATH": str(config)}


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cantata", "transcribe", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def lines_until(said: str, stream: IO[str]) -> Iterator[str]:
    for line in stream:
        yield line
        if said in line:
            return


@pytest.mark.thorough(every=2)
@needs_portaudio
@pytest.mark.parametrize("form", ["txt", "json"])
def test_words_are_shown_as_they_are_heard_and_written_after_ctrl_c(
    alsa: dict[str, str], form: str
) -> None:
    with start(alsa, "--microphone", "--format", form) as process:
        assert process.stderr is not None
        first, *_, last = lines_until(SAID, process.stderr)
        assert first == "Listening to default. Ctrl-C ends.\n"
        assert SAID in last
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        written, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    if form == "txt":
        assert written.count("\n") == 1
        assert SAID in written
        return
    transcript = json.loads(written)
    assert SAID in transcript["text"]
    assert SAID in " ".join(word["word"] for word in transcript["words"])
    assert transcript["duration"] > soundfile.info(RECORDING).duration


@needs_portaudio
def test_without_a_microphone_it_says_what_to_do(alsa: dict[str, str], tmp_path: Path) -> None:
    with start(alsa, "--input-device", "headset") as named:
        _, told = named.communicate(timeout=60)
    assert named.returncode == 1
    assert told == "cantata: no microphone 'headset'; valid: a part of default\n"
    (tmp_path / "asound.conf").write_text(NO_CARD, encoding="utf-8")
    with start(alsa, "--microphone") as nothing:
        _, told = nothing.communicate(timeout=60)
    assert nothing.returncode == 1
    assert told == (
        "cantata: this machine has no microphone; connect one, or record elsewhere, and give the "
        "file instead\n"
    )


def test_without_its_package_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    result = run("--microphone")
    assert result.exit_code == 1
    assert "pip install 'cantata[microphone]'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either recordings or --microphone"),
        ((str(RECORDING), "--microphone"), "give either recordings or --microphone"),
        (("--microphone", "--server", "http://127.0.0.1:9"), "--server takes recordings"),
    ],
)
def test_options_that_exclude_each_other(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
