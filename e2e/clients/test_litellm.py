"""LiteLLM, which speaks to any server of OpenAI's shape: speech, its words, pictures."""

from __future__ import annotations

import base64
import io
from typing import Any

import litellm
import pytest
from PIL import Image

from .conftest import Address
from .listening import KEY, SENTENCES, assert_heard, assert_words, decode

pytestmark = pytest.mark.e2e


@pytest.fixture
def model(painter: dict[str, Any]) -> str:
    """A model that draws, as LiteLLM names it."""
    return f"openai/{painter['id']}"


def get_size(encoded: str | None) -> tuple[int, int]:
    with Image.open(io.BytesIO(base64.b64decode(encoded or ""))) as image:
        image.load()
        return image.size


def test_speech_and_its_words(server: Address) -> None:
    options = {"api_base": f"{server.http}/v1", "api_key": KEY}
    spoken = litellm.speech(
        model="openai/tts-1", input=SENTENCES, voice="alloy", response_format="wav", **options
    )
    assert_heard(*decode(spoken.content))
    heard = litellm.transcription(
        model="openai/whisper-1", file=("speech.wav", spoken.content), language="en", **options
    )
    assert_words(heard.text)


def test_pictures(server: Address, model: str) -> None:
    options = {"model": model, "api_base": f"{server.http}/v1", "api_key": KEY}
    several = litellm.image_generation("a red house", n=2, seed=7, size="64x64", **options)
    assert several.data is not None
    assert [get_size(picture.b64_json) for picture in several.data] == [(64, 64)] * 2
    assert several.usage is not None
    assert several.usage.output_tokens > 0
    second = litellm.image_generation(
        "a red house", size="64x64", extra_body={"seed": 8}, **options
    )
    assert second.data is not None
    assert second.data[0].b64_json == several.data[1].b64_json


async def test_pictures_without_waiting(server: Address, model: str) -> None:
    answer = await litellm.aimage_generation(
        prompt="a red house",
        model=model,
        api_base=f"{server.http}/v1",
        api_key=KEY,
        size="64x64",
        quality="low",
        extra_body={"output_format": "webp"},
    )
    assert answer.data is not None
    assert base64.b64decode(answer.data[0].b64_json or "")[8:12] == b"WEBP"


def test_an_edit(server: Address, painter: dict[str, Any], model: str) -> None:
    """Where no model takes pictures, the server says so."""
    file = io.BytesIO()
    Image.new("RGB", (20, 20), (255, 0, 0)).save(file, "PNG")
    file.seek(0)

    def edit() -> litellm.ImageResponse:
        return litellm.image_edit(
            image=[file],
            prompt="green",
            model=model,
            size="64x64",
            api_base=f"{server.http}/v1",
            api_key=KEY,
        )

    if painter["images"]["max_references"]:
        answer = edit()
        assert answer.data is not None
        assert get_size(answer.data[0].b64_json) == (64, 64)
    else:
        with pytest.raises(litellm.BadRequestError, match="draws from text only"):
            edit()


def test_what_is_rejected(server: Address, model: str) -> None:
    with pytest.raises(litellm.BadRequestError, match="valid: 'auto', or WIDTHxHEIGHT"):
        litellm.image_generation(
            "a red house",
            model=model,
            size="61x64",
            api_base=f"{server.http}/v1",
            api_key=KEY,
        )
