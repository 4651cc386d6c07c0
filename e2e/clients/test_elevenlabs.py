"""ElevenLabs' own SDK."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from elevenlabs import VoiceSettings
from elevenlabs.client import ElevenLabs
from elevenlabs.core.api_error import ApiError

from .conftest import Address
from .listening import KEY, SENTENCES, assert_heard, decode, samples
from .programs import load
from .tls import serve_tls_proxy

pytestmark = pytest.mark.e2e

CLOUD_VOICE = "JBFqnCBsd6RMkjVDRZzb"


@pytest.fixture
def client(server: Address) -> ElevenLabs:
    return ElevenLabs(api_key=KEY, base_url=server.http)


def test_a_file(client: ElevenLabs) -> None:
    pieces = client.text_to_speech.convert(
        CLOUD_VOICE,
        text=SENTENCES,
        model_id="eleven_multilingual_v2",
        output_format="mp3_44100_128",
        voice_settings=VoiceSettings(stability=0.5, similarity_boost=0.7, speed=1.0),
    )
    assert_heard(*decode(b"".join(pieces)))


def test_the_program_of_the_document(
    server: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/migrate.md"""
    monkeypatch.chdir(tmp_path)
    load("../migrate.md", "speak.py", server, tmp_path)
    pcm, rate = decode((tmp_path / "morning.mp3").read_bytes())
    assert len(pcm) > rate / 2


@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_streamed(client: ElevenLabs, rate: int) -> None:
    pieces = client.text_to_speech.stream(CLOUD_VOICE, text=SENTENCES, output_format=f"pcm_{rate}")
    assert_heard(samples(b"".join(pieces)), rate)


def test_opus(client: ElevenLabs) -> None:
    pieces = client.text_to_speech.convert(
        CLOUD_VOICE, text=SENTENCES, output_format="opus_48000_64"
    )
    assert_heard(*decode(b"".join(pieces)))


def test_timestamps(client: ElevenLabs) -> None:
    answer = client.text_to_speech.convert_with_timestamps(
        CLOUD_VOICE, text=SENTENCES, output_format="pcm_24000"
    )
    sound = samples(base64.b64decode(answer.audio_base_64))
    assert_heard(sound, 24_000)
    assert answer.alignment is not None
    assert "".join(answer.alignment.characters) == SENTENCES
    ends = answer.alignment.character_end_times_seconds
    assert ends == sorted(ends)
    assert ends[-1] == pytest.approx(len(sound) / 24_000, abs=0.01)


def test_streamed_timestamps(client: ElevenLabs) -> None:
    lines = list(
        client.text_to_speech.stream_with_timestamps(
            CLOUD_VOICE, text=SENTENCES, output_format="pcm_24000"
        )
    )
    assert_heard(samples(b"".join(base64.b64decode(one.audio_base_64) for one in lines)), 24_000)
    told = [one.alignment for one in lines if one.alignment is not None]
    assert "".join("".join(one.characters) for one in told).strip() == SENTENCES


def test_voices(client: ElevenLabs) -> None:
    voices = client.voices.get_all().voices
    assert voices
    assert [one.voice_id for one in client.voices.search().voices] == [
        one.voice_id for one in voices
    ]
    assert client.voices.get(voices[0].voice_id).name == voices[0].name
    own = client.text_to_speech.convert(
        voices[-1].voice_id, text=SENTENCES, output_format="pcm_24000"
    )
    assert_heard(samples(b"".join(own)), 24_000)


def test_errors(client: ElevenLabs) -> None:
    with pytest.raises(ApiError) as refused:
        list(client.text_to_speech.convert("nobody", text=SENTENCES))
    assert refused.value.status_code == 400
    assert refused.value.body["detail"]["status"] == "voice_not_found"


@pytest.mark.parametrize("model", [None, "eleven_flash_v2_5"])
async def test_realtime(
    server: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str | None
) -> None:
    """Words over a WebSocket. The SDK asks for TLS whatever the address is."""
    words = iter([f"{word} " for word in SENTENCES.split()])
    async with serve_tls_proxy(server.http, tmp_path / "authority.pem") as address:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        speech = ElevenLabs(api_key=KEY, base_url=address).text_to_speech
        pieces = speech.convert_realtime(
            CLOUD_VOICE,
            text=words,
            output_format="pcm_24000",
            voice_settings=VoiceSettings(speed=1.0),
            **({"model_id": model} if model else {}),
        )
        sound = await asyncio.to_thread(b"".join, pieces)
    assert_heard(samples(sound), 24_000)
