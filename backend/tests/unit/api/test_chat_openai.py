"""POST /v1/chat/completions through OpenAI's own client, unmodified."""

from __future__ import annotations

import asyncio
import base64
import io
import wave
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import openai
import pytest
from fake_picture import CONVERSING, FakeImageModel, expected_picture
from fake_service import eventually
from live_server import Server

from cantata.contract.data.chat import AudioPart, ImagePart, Role, TextPart
from cantata.contract.data.errors import RequestFailed
from images_and_videos import image_file, quarters
from sounds import wav

TEXT = "The kettle is on."


@pytest.fixture
async def chat(server: Server) -> AsyncIterator[openai.resources.chat.AsyncCompletions]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="unused", max_retries=0
    ) as client:
        yield client.chat.completions


async def test_a_spoken_conversation(
    server: Server, chat: openai.resources.chat.AsyncCompletions
) -> None:
    first = await chat.create(
        model="omni",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
        messages=[
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {
                        "type": "input_audio",
                        "input_audio": {
                            "data": base64.b64encode(wav(0.5)).decode(),
                            "format": "wav",
                        },
                    },
                    {
                        "type": "image_url",
                        "image_url": {
                            "url": "data:image/png;base64,"
                            + base64.b64encode(image_file(quarters())).decode(),
                            "detail": "auto",
                        },
                    },
                    {"type": "text", "text": TEXT},
                ],
            },
        ],
    )
    audio = first.choices[0].message.audio
    assert audio is not None
    assert audio.transcript == TEXT
    with wave.open(io.BytesIO(base64.b64decode(audio.data))) as file:
        assert file.getnframes() > 0
    assert first.choices[0].finish_reason == "stop"
    assert first.usage is not None
    assert first.usage.completion_tokens_details is not None
    assert first.usage.completion_tokens_details.audio_tokens
    kinds = [type(part) for part in server.service.omni.counts.requests[0].messages[1].parts]
    assert kinds == [AudioPart, ImagePart, TextPart]
    await chat.create(
        model="omni",
        messages=[
            {"role": "user", "content": "?"},
            {"role": "assistant", "audio": {"id": audio.id}},
            {"role": "user", "content": "And now?"},
        ],
    )
    asked = server.service.omni.counts.requests[-1].messages
    assert [(m.role, m.parts[0]) for m in asked] == [
        (Role.USER, TextPart("?")),
        (Role.ASSISTANT, TextPart(TEXT)),
        (Role.USER, TextPart("And now?")),
    ]


async def test_a_streamed_answer(chat: openai.resources.chat.AsyncCompletions) -> None:
    stream = await chat.create(
        model="omni",
        stream=True,
        stream_options={"include_usage": True},
        modalities=["text", "audio"],
        audio={"voice": {"id": "ethan"}, "format": "pcm16"},
        messages=[{"role": "user", "content": TEXT}],
    )
    transcript, sound, ids, reasons, usage = "", b"", [], [], None
    async for chunk in stream:
        usage = chunk.usage
        for choice in chunk.choices:
            reasons.append(choice.finish_reason)
            if (audio := choice.delta.audio) is not None:
                ids += [audio.id] if audio.id else []
                transcript += audio.transcript or ""
                sound += base64.b64decode(audio.data or "")
    assert transcript == TEXT
    assert len(ids) == 1
    assert reasons[-1] == "stop"
    assert set(reasons[:-1]) == {None}
    assert np.abs(np.frombuffer(sound, "<i2")).max() > 5000
    assert usage is not None
    assert usage.prompt_tokens == 1


async def test_the_clients_own_way_to_stream(
    chat: openai.resources.chat.AsyncCompletions,
) -> None:
    """It puts the chunks together and checks them."""
    messages = [{"role": "user", "content": TEXT}]
    async with chat.stream(model="reader", messages=messages) as stream:  # type: ignore[arg-type]
        async for _ in stream:
            pass
        whole = await stream.get_final_completion()
    assert whole.choices[0].message.content == TEXT


async def test_errors_have_their_fields(
    server: Server, chat: openai.resources.chat.AsyncCompletions
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await chat.create(
            model="omni",
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}],
                }
            ],
        )
    assert refused.value.param == "messages[0].content[0].image_url"
    assert refused.value.code == "invalid_image"
    behaviour = server.service.omni.behaviour
    behaviour.fail_after, behaviour.error = 2, RequestFailed("the stage gave up")
    stream = await chat.create(
        model="omni", stream=True, messages=[{"role": "user", "content": TEXT}]
    )
    with pytest.raises(openai.APIError, match="the stage gave up") as broken:
        async for _ in stream:
            pass
    assert broken.value.code == "request_failed"


async def test_closing_a_stream_frees_its_request(
    server: Server, chat: openai.resources.chat.AsyncCompletions
) -> None:
    model = server.service.omni
    model.behaviour.may_continue = asyncio.Event()
    stream = await chat.create(
        model="omni", stream=True, messages=[{"role": "user", "content": TEXT}]
    )
    assert await anext(stream)
    await stream.close()
    await eventually(lambda: model.counts.open == 0)
    assert model.counts.aborted == 1


async def test_a_conversation_of_pictures(
    server: Server, chat: openai.resources.chat.AsyncCompletions
) -> None:
    """An answer goes back as the client has it; the stream's comments do not disturb it."""
    muse = FakeImageModel("muse", CONVERSING)
    muse.behaviour.thought = ("A house,", " red.")
    server.service.image_models = {muse.name: muse}
    asked = {"modalities": ["text", "image"], "image_config": {"texture": "rough"}}
    messages: list[Any] = [{"role": "user", "content": "A red house."}]
    first = await chat.create(model="muse", messages=messages, seed=7, extra_body=asked)
    answer = first.choices[0].message
    assert answer.model_extra is not None
    assert answer.model_extra["reasoning_content"] == "A house, red."
    messages += [answer.model_dump(), {"role": "user", "content": "Now at night."}]
    stream = await chat.create(model="muse", messages=messages, stream=True, extra_body=asked)
    deltas = [chunk.choices[0].delta async for chunk in stream]
    told = [(delta.model_extra or {}).get("reasoning_content") for delta in deltas]
    assert "".join(text for text in told if text) == "A house, red."
    [image] = [one for delta in deltas for one in (delta.model_extra or {}).get("images") or []]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    before, request = muse.counts.requests
    assert request.options == {"texture": "rough"}
    assert [(turn.role, turn.text) for turn in request.earlier] == [
        (Role.USER, "A red house."),
        (Role.ASSISTANT, ""),
    ]
    (drawn,) = request.earlier[1].pictures
    np.testing.assert_array_equal(drawn, expected_picture(before, *CONVERSING.default_size))
