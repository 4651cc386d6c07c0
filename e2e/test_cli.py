"""The command line with the real voice, as a person without a server uses it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from cantata.config.plugins import load_plugins
from cantata_bench.asr import transcribe, word_error_rate

TEXT = "We walked along the river until the sun went down."

pytestmark = [pytest.mark.e2e, pytest.mark.level1]


def cantata(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cantata", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("from_stdin", [False, True])
def test_say_writes_a_file_that_says_it(tmp_path: Path, from_stdin: bool) -> None:
    out = tmp_path / "said.wav"
    said = cantata("say", "-" if from_stdin else TEXT, "-o", str(out), stdin=TEXT)
    assert said.returncode == 0, said.stderr
    assert "TTFP" in said.stderr
    pcm, rate = soundfile.read(out, dtype="int16")
    assert word_error_rate([TEXT], [transcribe(pcm, rate)]) <= 0.4


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["say", "", "-o", "x.wav"], "nothing to say"),
        (["say", "Hello.", "-o", "no/such/folder/x.wav"], "no/such/folder"),
        (["say", "Hello.", "-o", "x.wav", "--model", "nonsense"], "'nonsense'"),
    ],
)
def test_mistakes_end_in_one_clear_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    said = cantata(*arguments)
    assert said.returncode != 0
    assert message in said.stderr
    assert "Traceback" not in said.stderr


def test_the_doctor_finds_this_installation_well() -> None:
    checked = cantata("doctor")
    assert checked.returncode == 0, checked.stdout
    assert "vLLM" in checked.stdout
    assert checked.stdout.splitlines()[-1].strip()  # the summary ends it
    assert "Ready: " in checked.stdout
    exact = re.findall(r"numerics of (\S+) +│ (\w+)", checked.stdout)
    plugins = load_plugins().values()
    assert exact == [
        (one.name, "ok")
        for one in plugins
        if one.check_numerics is not None and one.embedded_checkpoint
    ]
