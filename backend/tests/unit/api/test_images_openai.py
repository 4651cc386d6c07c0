"""POST /v1/images/... through OpenAI's own client, unmodified."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Iterator

import openai
import pytest
from fake_service import eventually
from live_server import Server
from test_images import PROMPT

from cantata.contract.data.errors import RequestFailed
from images_and_videos import image_file, quarters

FILE = image_file(quarters())


@pytest.fixture
async def images(server: Server) -> AsyncIterator[openai.resources.AsyncImages]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="unused", max_retries=0
    ) as client:
        yield client.images


@pytest.fixture
def waiting(server: Server) -> Iterator[openai.resources.Images]:
    """The client that blocks."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        yield client.images


async def test_generating(server: Server, images: openai.resources.AsyncImages) -> None:
    answer = await images.generate(
        model="gpt-image-1",
        prompt=PROMPT,
        n=2,
        size="64x64",
        quality="high",
        background="opaque",
        output_format="webp",
        output_compression=70,
        moderation="low",
        extra_body={"seed": 5, "negative_prompt": "rain", "num_inference_steps": 3},
    )
    assert answer.data is not None
    assert len(answer.data) == 2
    assert answer.usage is not None
    assert answer.usage.input_tokens_details.text_tokens == 3
    assert (answer.size, answer.quality, answer.output_format) == ("64x64", "high", "webp")
    assert base64.b64decode(answer.data[0].b64_json or "")[8:12] == b"WEBP"
    request = server.service.painter.counts.requests[0]
    assert (request.negative_prompt, request.steps) == ("rain", 3)


async def test_the_client_that_blocks(waiting: openai.resources.Images) -> None:
    def work() -> tuple[bytes, bytes, list[str], list[str]]:
        made = waiting.generate(prompt=PROMPT, extra_body={"seed": 5}).data
        changed = waiting.edit(prompt=PROMPT, image=io.BytesIO(FILE), extra_body={"seed": 5}).data
        assert made is not None
        assert changed is not None
        options = {"seed": 5}
        with waiting.generate(
            prompt=PROMPT, stream=True, partial_images=2, extra_body=options
        ) as stream:
            told = [(event.type, event.b64_json) for event in stream]
        with waiting.edit(
            prompt=PROMPT, image=[FILE], stream=True, partial_images=1, extra_body=options
        ) as edits:
            edited = [(event.type, event.b64_json) for event in edits]
        assert told[-1][1] == made[0].b64_json
        assert edited[-1][1] == changed[0].b64_json
        files = [base64.b64decode(one.b64_json or "") for one in (made[0], changed[0])]
        return files[0], files[1], [kind for kind, _ in told], [kind for kind, _ in edited]

    made, changed, told, edited = await asyncio.to_thread(work)
    assert made != changed
    assert made[:4] == changed[:4] == b"\x89PNG"
    assert told == [*["image_generation.partial_image"] * 2, "image_generation.completed"]
    assert edited == ["image_edit.partial_image", "image_edit.completed"]


async def test_editing_one_and_several(
    server: Server, images: openai.resources.AsyncImages
) -> None:
    for sent in (FILE, ("a.png", FILE, "image/png"), [FILE], [FILE, FILE]):
        answer = await images.edit(
            model="editor", image=sent, prompt=PROMPT, n=1, size="64x64", response_format="b64_json"
        )
        assert answer.data is not None
        assert answer.data[0].b64_json
    counts = [len(request.references) for request in server.service.editor.counts.requests]
    assert counts == [1, 1, 1, 2]


async def test_a_stream(images: openai.resources.AsyncImages) -> None:
    stream = await images.generate(prompt=PROMPT, stream=True, partial_images=3)
    events = [event async for event in stream]
    for number, event in enumerate(events[:-1]):
        assert isinstance(event, openai.types.ImageGenPartialImageEvent)
        assert event.partial_image_index == number
    assert len(events) == 4
    last = events[-1]
    assert isinstance(last, openai.types.ImageGenCompletedEvent)
    assert last.usage.total_tokens == 3 + 4 * 3
    edits = await images.edit(image=FILE, prompt=PROMPT, stream=True)
    (edited,) = [event async for event in edits]
    assert isinstance(edited, openai.types.ImageEditCompletedEvent)


async def test_progress_does_not_break_its_parser(images: openai.resources.AsyncImages) -> None:
    stream = await images.generate(prompt=PROMPT, stream=True, extra_body={"stream_progress": True})
    kinds = [event.type async for event in stream]
    assert kinds == [*["image_generation.progress"] * 4, "image_generation.completed"]


async def test_errors_have_their_fields(
    server: Server, images: openai.resources.AsyncImages
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await images.generate(prompt=PROMPT, size="100x100")
    assert (refused.value.param, refused.value.code) == ("size", "invalid_value")
    with pytest.raises(openai.BadRequestError) as refused:
        await images.edit(image=FILE, mask=FILE, prompt=PROMPT)
    assert refused.value.param == "mask"
    how = server.service.painter.behaviour
    how.fail_after, how.error = 2, RequestFailed("the stage gave up")
    stream = await images.generate(prompt=PROMPT, stream=True)
    with pytest.raises(openai.APIError, match="the stage gave up") as broken:
        async for _ in stream:
            pass
    assert broken.value.code == "request_failed"


@pytest.mark.parametrize("kind", ["streamed", "whole"])
async def test_a_client_that_leaves_ends_all_pictures(
    server: Server, images: openai.resources.AsyncImages, kind: str
) -> None:
    counts = server.service.painter.counts
    server.service.painter.behaviour.may_continue = asyncio.Event()
    asking = images.generate(prompt=PROMPT, n=4, stream=kind == "streamed", partial_images=0)
    if kind == "streamed":
        stream = await asking
        assert isinstance(stream, openai.AsyncStream)
        await eventually(lambda: counts.open == 4)
        await stream.close()
    else:
        leaving = asyncio.create_task(asking)
        await eventually(lambda: counts.open == 4)
        leaving.cancel()
    await eventually(lambda: counts.open == 0)
    assert (counts.aborted, counts.finished) == (4, 0)
