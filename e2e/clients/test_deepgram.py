"""Deepgram's own SDK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deepgram import DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.socket_client import V1SocketClient
from deepgram.speak.v1.types.speak_v1metadata import SpeakV1Metadata
from deepgram.speak.v1.types.speak_v1text import SpeakV1Text

from .conftest import Address
from .listening import KEY, LONG_TEXT, SENTENCES, assert_heard, decode, samples

pytestmark = pytest.mark.e2e

MODEL = "aura-2-thalia-en"


@pytest.fixture
def client(server: Address) -> DeepgramClient:
    environment = DeepgramClientEnvironment(
        base=server.http,
        production=server.websocket,
        agent=server.websocket,
        agent_rest=server.http,
    )
    return DeepgramClient(api_key=KEY, environment=environment)


@pytest.fixture
def connection(client: DeepgramClient) -> Iterator[V1SocketClient]:
    with client.speak.v1.connect(
        model=MODEL, encoding="linear16", sample_rate="24000"
    ) as connection:
        assert isinstance(connection.recv(), SpeakV1Metadata)
        yield connection


def say(connection: V1SocketClient, text: str) -> None:
    for word in text.split():
        connection.send_text(SpeakV1Text(type="Speak", text=f"{word} "))
    connection.send_flush()


def sound_until(connection: V1SocketClient, kind: str) -> bytes:
    """The SDK gives every answer with a `sequence_id` the class of the first such."""
    sound = b""
    while isinstance(message := connection.recv(), bytes):
        sound += message
    assert message.type == kind
    return sound


def test_a_file(client: DeepgramClient) -> None:
    assert_heard(*decode(b"".join(client.speak.v1.audio.generate(text=SENTENCES, model=MODEL))))


def test_samples(client: DeepgramClient) -> None:
    pieces = client.speak.v1.audio.generate(
        text=SENTENCES, model=MODEL, encoding="linear16", container="none", sample_rate=16000
    )
    assert_heard(samples(b"".join(pieces)), 16_000)


def test_errors(client: DeepgramClient) -> None:
    with pytest.raises(ApiError) as refused:
        list(client.speak.v1.audio.generate(text=SENTENCES, model="nobody"))
    assert refused.value.status_code == 400
    assert "nobody" in refused.value.body["err_msg"]


def test_words_over_a_socket(connection: V1SocketClient) -> None:
    for _ in range(2):
        say(connection, SENTENCES)
        assert_heard(samples(sound_until(connection, "Flushed")), 24_000)
    connection.send_close()


def test_clear_in_mid_speech(connection: V1SocketClient) -> None:
    say(connection, LONG_TEXT)
    assert isinstance(connection.recv(), bytes)
    connection.send_clear()
    sound_until(connection, "Cleared")
    # Nothing of the long text comes after that.
    say(connection, SENTENCES)
    assert_heard(samples(sound_until(connection, "Flushed")), 24_000)
