"""OpenAI's own SDK, and others that send its forms, have recordings written down."""

from __future__ import annotations

from collections.abc import Iterator

import litellm
import openai
import pytest

from .conftest import Address
from .listening import KEY, assert_words
from .speaking import speak

pytestmark = pytest.mark.e2e


@pytest.fixture
def client(server: Address) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        yield client


@pytest.fixture
def recording(server: Address) -> tuple[str, bytes]:
    return "speech.wav", speak(server)


def test_json(client: openai.OpenAI, recording: tuple[str, bytes]) -> None:
    answer = client.audio.transcriptions.create(model="gpt-4o-transcribe", file=recording)
    assert_words(answer.text)
    assert answer.usage is not None


def test_text(client: openai.OpenAI, server: Address) -> None:
    recording = ("speech.mp3", speak(server, "mp3"))
    text = client.audio.transcriptions.create(
        model="whisper-1", file=recording, response_format="text", language="en"
    )
    assert_words(text)


def test_subtitles(client: openai.OpenAI, recording: tuple[str, bytes]) -> None:
    subtitles = client.audio.transcriptions.create(
        model="whisper-1", file=recording, response_format="srt"
    )
    lines = subtitles.splitlines()
    assert lines[0] == "1"
    assert "-->" in lines[1]
    assert_words(" ".join(lines[2::4]))


def test_word_times(client: openai.OpenAI, recording: tuple[str, bytes]) -> None:
    answer = client.audio.transcriptions.create(
        model="whisper-1",
        file=recording,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert_words(answer.text)
    assert answer.words
    assert_words(" ".join(word.word for word in answer.words))
    starts = [word.start for word in answer.words]
    assert starts == sorted(starts)
    assert answer.segments
    assert 1.5 < answer.duration < 6


def test_streamed(client: openai.OpenAI, recording: tuple[str, bytes]) -> None:
    events = list(
        client.audio.transcriptions.create(
            model="gpt-4o-mini-transcribe",
            file=recording,
            stream=True,
            include=["logprobs"],
        )
    )
    *deltas, done = events
    assert done.type == "transcript.text.done"
    assert_words(done.text)
    assert {delta.type for delta in deltas} == {"transcript.text.delta"}
    assert "".join(delta.delta for delta in deltas) == done.text
    assert done.logprobs


async def test_async(server: Address, recording: tuple[str, bytes]) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        answer = await client.audio.transcriptions.create(model="gpt-transcribe", file=recording)
    assert_words(answer.text)


def test_errors_have_their_fields(client: openai.OpenAI, recording: tuple[str, bytes]) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"no sound"))
    assert refused.value.param == "file"
    with pytest.raises(openai.BadRequestError) as unknown:
        client.audio.transcriptions.create(model="whisper-1", file=recording, language="xx")
    assert unknown.value.param == "language"


def test_litellm(server: Address, recording: tuple[str, bytes]) -> None:
    answer = litellm.transcription(
        model="openai/whisper-1", file=recording, api_base=f"{server.http}/v1", api_key=KEY
    )
    assert_words(answer.text)
