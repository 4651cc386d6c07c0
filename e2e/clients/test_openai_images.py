"""OpenAI's own SDK: pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import openai
import pytest
from PIL import Image

from .conftest import Address
from .listening import KEY

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("painter")]

PROMPT = "a red house"


@pytest.fixture
def client(server: Address) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        yield client


def picture(encoded: str | None) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(encoded or "")))


def test_pictures_in_every_format(client: openai.OpenAI) -> None:
    for kind in ("png", "webp", "jpeg"):
        answer = client.images.generate(
            model="gpt-image-2",
            prompt=PROMPT,
            n=2,
            size="64x64",
            output_format=kind,
            extra_body={"seed": 5},
        )
        assert answer.data is not None
        assert [picture(one.b64_json).size for one in answer.data] == [(64, 64)] * 2
        assert {picture(one.b64_json).format for one in answer.data} == {kind.upper()}
        assert answer.size == "64x64"


def test_a_stream_ends_with_the_same_picture(client: openai.OpenAI) -> None:
    whole = client.images.generate(prompt=PROMPT, size="64x64", extra_body={"seed": 5})
    assert whole.data is not None
    with client.images.generate(
        prompt=PROMPT, size="64x64", stream=True, partial_images=3, extra_body={"seed": 5}
    ) as stream:
        *before, last = list(stream)
    assert isinstance(last, openai.types.ImageGenCompletedEvent)
    assert last.b64_json == whole.data[0].b64_json
    indexes = []
    for event in before:
        assert isinstance(event, openai.types.ImageGenPartialImageEvent)
        assert picture(event.b64_json).size == (64, 64)
        indexes.append(event.partial_image_index)
    assert indexes == list(range(len(before)))
    assert len(before) <= 3


async def test_the_client_that_does_not_block(server: Address) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        stream = await client.images.generate(prompt=PROMPT, size="64x64", stream=True)
        kinds = [event.type async for event in stream]
        with pytest.raises(openai.BadRequestError) as refused:
            await client.images.generate(prompt=PROMPT, background="transparent")
    assert kinds == ["image_generation.completed"]
    assert refused.value.param == "background"
