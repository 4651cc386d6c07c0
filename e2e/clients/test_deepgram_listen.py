"""Deepgram's own SDK has speech written down."""

from __future__ import annotations

import pytest
from deepgram import AsyncDeepgramClient, DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.environment import DeepgramClientEnvironment
from deepgram.listen.v1.types.listen_v1metadata import ListenV1Metadata
from deepgram.listen.v1.types.listen_v1results import ListenV1Results
from deepgram.listen.v1.types.listen_v1speech_started import ListenV1SpeechStarted
from deepgram.listen.v1.types.listen_v1utterance_end import ListenV1UtteranceEnd

from .conftest import Address
from .listening import KEY, assert_words
from .speaking import RATE, frames, speak

pytestmark = pytest.mark.e2e

MODEL = "nova-3"


@pytest.fixture
def environment(server: Address) -> DeepgramClientEnvironment:
    return DeepgramClientEnvironment(
        base=server.http,
        production=server.websocket,
        agent=server.websocket,
        agent_rest=server.http,
    )


@pytest.fixture
def client(environment: DeepgramClientEnvironment) -> DeepgramClient:
    return DeepgramClient(api_key=KEY, environment=environment)


def test_a_recording(server: Address, client: DeepgramClient) -> None:
    answer = client.listen.v1.media.transcribe_file(
        request=speak(server),
        model=MODEL,
        language="en-US",
        smart_format=True,
        utterances=True,
        keyterm=["weather", "morning"],
    )
    alternative = answer.results.channels[0].alternatives[0]
    assert_words(alternative.transcript)
    assert_words(" ".join(word.word for word in alternative.words))
    assert_words(" ".join(one.transcript for one in answer.results.utterances))
    assert 1.5 < answer.metadata.duration < 6


def test_errors(client: DeepgramClient) -> None:
    with pytest.raises(ApiError) as refused:
        client.listen.v1.media.transcribe_file(request=b"no sound", model=MODEL)
    assert refused.value.status_code == 400
    assert "not a readable sound file" in refused.value.body["err_msg"]


def test_a_stream(server: Address, client: DeepgramClient) -> None:
    with client.listen.v1.connect(
        model=MODEL,
        encoding="linear16",
        sample_rate=str(RATE),
        interim_results="true",
        punctuate="true",
        vad_events="true",
        utterance_end_ms="1000",
        endpointing="300",
    ) as connection:
        for frame in frames(server):
            connection.send_media(frame)
        connection.send_keep_alive()
        connection.send_close_stream()
        messages = list(connection)
    assert isinstance(messages[0], ListenV1SpeechStarted)
    assert isinstance(messages[-1], ListenV1Metadata)
    finals = [one for one in messages if isinstance(one, ListenV1Results) and one.is_final]
    assert_words(" ".join(one.channel.alternatives[0].transcript for one in finals))
    assert any(isinstance(one, ListenV1UtteranceEnd) for one in messages)


async def test_a_file_in_pieces(server: Address, environment: DeepgramClientEnvironment) -> None:
    client = AsyncDeepgramClient(api_key=KEY, environment=environment)
    sound = speak(server, "opus")
    async with client.listen.v1.connect(model=MODEL) as connection:
        for start in range(0, len(sound), 1000):
            await connection.send_media(sound[start : start + 1000])
        await connection.send_finalize()
        await connection.send_close_stream()
        messages = [message async for message in connection]
    finals = [one for one in messages if isinstance(one, ListenV1Results) and one.is_final]
    assert_words(" ".join(one.channel.alternatives[0].transcript for one in finals))
