"""OpenAI's SDK and Vercel's AI SDK for JavaScript, unmodified: transcripts, and with the latter
texts, objects, functions, speech and pictures, too."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cantata_bench.server import running_server

from .conftest import LOG, PYTHON, Address
from .listening import assert_words
from .speaking import speak
from .tls import serve_tls_proxy

pytestmark = pytest.mark.e2e

FOLDER = Path(__file__).with_name("node")
RATE = 24_000
"""What the Realtime API's clients send."""
COMPLETED = "conversation.item.input_audio_transcription.completed"
DELTA = "conversation.item.input_audio_transcription.delta"


@pytest.fixture(scope="module")
def node() -> Path:
    """Playwright's own: the packages need a newer one than many systems have."""
    ask = "import playwright; print(playwright.__path__[0])"
    asked = subprocess.run([PYTHON, "-c", ask], check=True, capture_output=True, text=True)
    return Path(asked.stdout.strip(), "driver", "node")


@pytest.fixture
def recording(server: Address, tmp_path: Path) -> Path:
    file = tmp_path / "speech.wav"
    file.write_bytes(speak(server))
    return file


@pytest.fixture
def samples(server: Address, tmp_path: Path) -> Path:
    """Bare PCM, with the silence that ends the speech."""
    file = tmp_path / "speech.pcm"
    file.write_bytes(speak(server, "pcm", RATE))
    return file


def run(node: Path, script: str, url: str, *arguments: Path | str, **environment: str) -> Any:
    """What a script prints."""
    done = subprocess.run(
        [node, "--import", "./this_machine_only.mjs", script, f"{url}/v1", *arguments],
        cwd=FOLDER,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_openai(node: Path, server: Address, recording: Path) -> None:
    printed = run(node, "openai_transcribe.mjs", server.http, recording)
    assert_words(printed["json"]["text"])
    assert printed["json"]["usage"]["type"] == "duration"
    verbose = printed["verbose"]
    assert_words(" ".join(word["word"] for word in verbose["words"]))
    assert_words(" ".join(segment["text"] for segment in verbose["segments"]))
    assert 1.5 < verbose["duration"] < 6
    refused = printed["refused"]
    assert (refused["error"], refused["param"]) == ("BadRequestError", "model")
    assert "translates nothing" in refused["message"]
    assert "whisper" in printed["models"]


def test_openai_streamed(node: Path, server: Address, recording: Path) -> None:
    *deltas, done = run(node, "openai_stream.mjs", server.http, recording)
    assert done["type"] == "transcript.text.done"
    assert_words(done["text"])
    assert {event["type"] for event in deltas} == {"transcript.text.delta"}
    assert "".join(event["delta"] for event in deltas) == done["text"]
    assert done["logprobs"]


async def test_openai_in_a_transcription_session(
    node: Path, server: Address, samples: Path, tmp_path: Path
) -> None:
    """Its WebSockets are always encrypted."""
    authority = tmp_path / "authority.pem"
    async with serve_tls_proxy(server.http, authority) as url:
        trusted = {"NODE_EXTRA_CA_CERTS": str(authority)}
        script = "openai_realtime.mjs"
        events = await asyncio.to_thread(run, node, script, url, samples, **trusted)
    assert events[0]["session"]["object"] == "realtime.transcription_session"
    (completed,) = [event for event in events if event["type"] == COMPLETED]
    assert_words(completed["transcript"])
    deltas = "".join(event["delta"] for event in events if event["type"] == DELTA)
    assert deltas == completed["transcript"]


def test_ai_sdk(node: Path, server: Address, recording: Path, samples: Path) -> None:
    printed = run(node, "ai_sdk.mjs", server.http, recording, samples)
    whole = printed["whole"]
    assert_words(whole["text"])
    assert_words(" ".join(segment["text"] for segment in whole["segments"]))
    assert whole["language"] == "en"
    assert 1.5 < whole["durationInSeconds"] < 6
    assert whole["warnings"] == []
    streamed = printed["streamed"]
    assert_words(streamed["text"])
    assert "".join(streamed["deltas"]) == streamed["text"]


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[str]:
    """The address of a server with a small text model of random weights."""
    folder = tmp_path / "random-llama"
    folder.mkdir()
    write = "from cantata_models.text_model.random_checkpoint import write_tiny as write"
    program = f"import pathlib, sys; {write}; write(pathlib.Path(sys.argv[1]))"
    subprocess.run([PYTHON, "-c", program, folder], check=True, capture_output=True)
    named = (str(folder), "quartet", "sketch")
    options = [option for name in named for option in ("--model", name)]
    log = LOG.with_name("answering.log")
    with running_server(log, python=PYTHON, options=options) as running:
        yield running.url


def test_ai_sdk_answers_speaks_and_draws(node: Path, answering: str) -> None:
    printed = run(node, "ai_sdk_text.mjs", answering, "text-model", "sketch")
    for route in ("responses", "chat"):
        told = printed[route]
        whole, streamed = told["text"]
        assert whole == streamed != ""
        assert told["usage"][0] == told["usage"][1] > 0
        first, second = told["read"]
        assert second > first + told["usage"][0], "the second turn has the first answer"
        assert told["parts"]["text-delta"] > 1
        assert told["parts"]["finish"] == 1
        assert set(told["object"]) == {"sky", "warm"}
        ((name, arguments),) = told["calls"]
        assert name == "weather"
        assert told["results"] == [f"It is {arguments['sky']}."]
        assert told["steps"]["finish-step"] == 2, "it answers what the function said"
        assert told["last"]
    assert printed["speech"]["type"] == "audio/wav"
    assert printed["speech"]["bytes"] > RATE
    assert [kind for kind, _ in printed["pictures"]] == ["image/png"] * 2
