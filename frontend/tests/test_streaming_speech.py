"""The Gradio component as Python sees it: its values, its events, and what it sends to browsers.

Gradio is imported in the tests: every worker imports this module, and one of them runs it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cantata_web


@pytest.fixture(scope="module")
def speech() -> cantata_web.StreamingSpeech:
    return cantata_web.StreamingSpeech(
        server_url="http://speech.example", voice="ben", render=False
    )


def test_the_package_offers_it_and_imports_gradio_only_for_it() -> None:
    code = (
        "import sys, cantata_web\n"
        "assert 'gradio' not in sys.modules\n"
        "cantata_web.StreamingSpeech\n"
        "assert 'gradio' in sys.modules\n"
        "cantata_web.NoSuchThing\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "module 'cantata_web' has no attribute 'NoSuchThing'" in done.stderr


def test_it_leaves_no_file_beside_its_module() -> None:
    assert cantata_web.StreamingSpeech.__module__ == "cantata_web.streaming_speech"
    assert not list(Path(cantata_web.__file__).parent.glob("*.pyi"))


def test_a_text_is_a_value_and_again_another_one(speech: cantata_web.StreamingSpeech) -> None:
    first, again = speech.postprocess("Good morning."), speech.postprocess("Good morning.")
    assert first is not None
    assert again is not None
    assert (first["text"], first["complete"], first["request"]) == ("Good morning.", True, {})
    assert first != again, "Gradio passes only changes to the browser"
    assert speech.preprocess(first) == "Good morning."
    assert speech.postprocess(None) is None
    assert speech.preprocess(None) is None


def test_a_text_that_is_being_written_is_one_value_for_as_long(
    speech: cantata_web.StreamingSpeech,
) -> None:
    partial = cantata_web.SpokenText("Good mor", complete=False, speed=1.5)
    assert speech.postprocess(partial) == speech.postprocess(partial)
    value = speech.postprocess(partial)
    assert value is not None
    assert (value["complete"], value["request"]) == (False, {"speed": 1.5})


async def test_its_events_can_be_listened_to() -> None:
    """In a loop: without one Gradio makes its own and leaves it open, which would be a warning."""
    import gradio as gr

    with gr.Blocks() as blocks:
        speech = cantata_web.StreamingSpeech()
        for event in ("first_packet", "word", "done", "failed"):
            getattr(speech, event)(lambda: None)
    listened = [target[1] for fn in blocks.fns.values() for target in fn.targets]
    assert listened == ["first_packet", "word", "done", "failed"]


def test_the_browser_gets_the_component_in_one_piece(speech: cantata_web.StreamingSpeech) -> None:
    config = speech.get_config()
    assert config["props"] == {"server_url": "http://speech.example", "request": {"voice": "ben"}}
    assert "import " not in config["js_on_load"].replace("import {", "import {")[:200]
    assert "registerProcessor" in config["js_on_load"], "the audio thread's script too"
    assert 'pattern="[A-Za-z0-9._~\\\\-]+"' in config["html_template"], "escaped for Gradio"
    first, other = (cantata_web.StreamingSpeech(render=False).html_template for _ in range(2))
    assert first != other, "two of them on a page share no id"
