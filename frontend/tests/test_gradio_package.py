"""The component as a package of its own: complete, and without Cantata's."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import cantata_web
from cantata_web.sources import HERE

FOLDER = HERE.parent / "gradio_streaming_speech"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
PRINT_COMPONENT = """
import sys
sys.modules["cantata_web"] = None
from gradio_streaming_speech import SpokenText, StreamingSpeech
speech = StreamingSpeech(server_url="http://speech.example", render=False)
assert speech.postprocess(SpokenText("Good morning."))["text"] == "Good morning."
sys.stdout.write(speech.js_on_load)
"""


def unpack_wheel(folder: Path) -> None:
    """What its wheel holds, by hatchling's rules."""
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(FOLDER / package, folder / Path(package).name)
    for source, target in wheel["force-include"].items():
        found, copied = FOLDER / source, folder / target
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if found.is_dir() else shutil.copy)(found, copied)


def test_it_is_the_same_component_without_cantata(tmp_path: Path) -> None:
    unpack_wheel(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PRINT_COMPONENT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    ours = cantata_web.StreamingSpeech(server_url="http://speech.example", render=False)
    assert done.stdout == ours.js_on_load


def test_it_has_the_version_and_the_gradio_of_cantata() -> None:
    cantata = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert PROJECT["project"]["version"] == cantata["project"]["version"]
    assert set(PROJECT["project"]["dependencies"]) <= set(
        cantata["project"]["optional-dependencies"]["web"]
    )
