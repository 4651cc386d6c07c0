"""POST /v1/chat/completions, answered with pictures."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import numpy as np
import pytest
from fake_chat import FakeChatModel
from fake_picture import CONVERSING, FakeImageModel, expected_picture
from fake_service import eventually
from live_server import Server
from numpy.typing import NDArray
from test_chat import CHAT
from test_images import decode_pixels

from cantata.contract.data.chat import ImagePart, Modality, Role, TextPart
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.pictures import ImageRequest, Turn
from cantata.media.images import PictureOutput, write_picture

Json = dict[str, Any]
SHOWN = np.random.default_rng(3).integers(0, 256, (32, 48, 3), np.uint8)
SIZE = CONVERSING.default_size


@pytest.fixture
def muse(server: Server) -> FakeImageModel:
    """A model that draws what conversations come to."""
    muse = FakeImageModel("muse", CONVERSING)
    server.service.image_models = {**server.service.image_models, muse.name: muse}
    return muse


def part(pixels: NDArray[np.uint8]) -> Json:
    file = base64.b64encode(write_picture(pixels, PictureOutput())).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{file}"}}


def asking(*messages: Json, **options: Any) -> Json:
    said = messages or ({"role": "user", "content": "A red house."},)
    return {"messages": list(said), "modalities": ["image"], "seed": 7, **options}


def decode_picture(image: Json, kind: str = "png") -> NDArray[np.uint8]:
    assert image["type"] == "image_url"
    head, _, data = image["image_url"]["url"].partition(",")
    assert head == f"data:image/{kind};base64"
    return decode_pixels(data, kind.upper())


async def answered(http: httpx.AsyncClient, body: Json) -> Json:
    response = await http.post(CHAT, json=body)
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


async def streamed(http: httpx.AsyncClient, body: Json) -> tuple[list[Json], list[str]]:
    """Chunks, and the comments between them."""
    response = await http.post(CHAT, json={**body, "stream": True})
    assert response.status_code == 200, response.text
    *events, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    chunks = [event.removeprefix("data: ") for event in events if event.startswith("data: ")]
    return [json.loads(chunk) for chunk in chunks], [e for e in events if e.startswith(":")]


async def refused(http: httpx.AsyncClient, body: Json, status: int = 400) -> Json:
    response = await http.post(CHAT, json=body)
    assert response.status_code == status, response.text
    error: Json = response.json()["error"]
    return error


async def test_a_picture_is_an_assistants_message(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    answer = await answered(http, asking())
    (request,) = muse.counts.requests
    assert (request.prompt, request.seed, request.earlier) == ("A red house.", 7, ())
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "muse"
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    (image,) = choice["message"].pop("images")
    assert choice["message"] == {
        "role": "assistant",
        "content": "",
        "refusal": None,
        "audio": None,
    }
    np.testing.assert_array_equal(decode_picture(image), expected_picture(request, *SIZE))
    assert (image["index"], image["seed"]) == (0, 7)
    squares = SIZE[0] * SIZE[1] // 16**2
    assert answer["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": squares,
        "total_tokens": 3 + squares,
        "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 0},
        "completion_tokens_details": {
            "text_tokens": 0,
            "audio_tokens": 0,
            "reasoning_tokens": 0,
            "image_tokens": squares,
        },
    }


async def test_an_answer_goes_back_as_it_came_and_is_changed(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    """A conversation: what was drawn, and what was shown meanwhile, is context for the next."""
    first = (await answered(http, asking()))["choices"][0]["message"]
    body = asking(
        {"role": "system", "content": "Draw in oil."},
        {"role": "user", "content": "A red house."},
        first,
        {"role": "user", "content": [part(SHOWN), {"type": "text", "text": "Put it there."}]},
    )
    second = (await answered(http, body))["choices"][0]["message"]
    before, request = muse.counts.requests
    drawn = expected_picture(before, *SIZE)
    assert request.prompt == "Put it there."
    np.testing.assert_array_equal(request.references[0], SHOWN)
    assert [(turn.role, turn.text, len(turn.pictures)) for turn in request.earlier] == [
        (Role.SYSTEM, "Draw in oil.", 0),
        (Role.USER, "A red house.", 0),
        (Role.ASSISTANT, "", 1),
    ]
    np.testing.assert_array_equal(request.earlier[-1].pictures[0], drawn)
    (image,) = second["images"]
    np.testing.assert_array_equal(decode_picture(image), expected_picture(request, *SIZE))


async def test_a_model_that_writes_sees_the_pictures_that_were_answers(
    server: Server, http: httpx.AsyncClient
) -> None:
    messages = [
        {"role": "assistant", "content": "Here:", "images": [part(SHOWN)]},
        {"role": "user", "content": "What is it?"},
    ]
    body = {"model": "reader", "messages": messages}
    assert (await answered(http, body))["choices"][0]["message"]["content"] == "What is it?"
    (request,) = server.service.reader.counts.requests
    said, shown = request.messages[0].parts
    assert said == TextPart("Here:")
    assert isinstance(shown, ImagePart)
    np.testing.assert_array_equal(shown.pixels, SHOWN)


async def test_pictures_behind_the_last_words_belong_to_them(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    words = [{"type": "text", "text": text} for text in ("First", "Then this:")]
    content = [words[0], part(SHOWN), words[1], part(SHOWN[::-1])]
    await answered(http, asking({"role": "user", "content": content}))
    (request,) = muse.counts.requests
    assert request.earlier == (Turn(Role.USER, (), "First"),)
    assert request.prompt == "Then this:"
    for sent, arrived in zip((SHOWN, SHOWN[::-1]), request.references, strict=True):
        np.testing.assert_array_equal(arrived, sent)


async def test_a_stream_tells_the_plan_the_steps_and_the_picture(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    muse.behaviour.thought = ("A house, ", "", "red.")
    body = asking(modalities=["text", "image"], stream_options={"include_usage": True})
    (*chunks, last, usage), comments = await streamed(http, body)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[:-1] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "A house, "},
        {"reasoning_content": "red."},
    ]
    (image,) = deltas[-1]["images"]
    (request,) = muse.counts.requests
    np.testing.assert_array_equal(decode_picture(image), expected_picture(request, *SIZE))
    assert last["choices"][0] == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": "stop",
    }
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3
    assert comments == [f": step {step} of 4" for step in range(1, 5)]
    whole = await answered(http, body)
    message = whole["choices"][0]["message"]
    assert message["images"] == [image]
    assert message["reasoning_content"] == "A house, red."
    assert whole["usage"] == usage["usage"]


async def test_how_it_is_drawn_stands_in_its_own_object(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    config = {
        "size": "64x32",
        "num_inference_steps": 3,
        "guidance_scale": 2.5,
        "negative_prompt": "rain",
        "output_format": "webp",
        "texture": "rough",
        "priority": "batch",
        "deadline_s": 30,
    }
    answer = await answered(http, asking(image_config=config, temperature=0.5, max_tokens=9))
    (request,) = muse.counts.requests
    assert (request.width, request.height, request.steps) == (64, 32, 3)
    assert (request.guidance, request.negative_prompt, request.batch) == (2.5, "rain", True)
    assert request.options == {"texture": "rough"}
    assert request.deadline_s is not None
    decode_picture(answer["choices"][0]["message"]["images"][0], "webp")


@pytest.fixture
def both(server: Server) -> tuple[FakeChatModel, FakeImageModel]:
    """One model that answers, and draws what conversations come to."""
    takes = frozenset({Modality.TEXT, Modality.IMAGE})
    chat, images = FakeChatModel("both", takes, (), 0), FakeImageModel("both", CONVERSING)
    service = server.service
    service.chat_models = {**service.chat_models, chat.name: chat}
    service.image_models = {**service.image_models, images.name: images}
    return chat, images


@pytest.mark.parametrize(
    ("modalities", "draws"),
    [
        (None, False),
        (["text"], False),
        (["image"], True),
        (["text", "image"], True),
        (["image", "text"], True),
    ],
)
async def test_a_model_that_does_both_does_what_is_asked(
    http: httpx.AsyncClient,
    both: tuple[FakeChatModel, FakeImageModel],
    modalities: list[str] | None,
    draws: bool,
) -> None:
    chat, images = both
    for stream in (False, True):
        body = {**asking(model="both"), "modalities": modalities, "stream": stream}
        response = await http.post(CHAT, json=body)
        assert response.status_code == 200, response.text
    assert (len(chat.counts.requests), len(images.counts.requests)) == (2 - 2 * draws, 2 * draws)
    drawn = await http.post("/v1/images/generations", json={"prompt": "a", "model": "both"})
    assert drawn.status_code == 200, drawn.text
    assert len(images.counts.requests) == 1 + 2 * draws


async def test_a_model_that_does_both_is_one_model(
    http: httpx.AsyncClient, both: tuple[FakeChatModel, FakeImageModel]
) -> None:
    chat, images = both
    listed = (await http.get("/v1/models")).json()["data"]
    (one,) = (model for model in listed if model["id"] == "both")
    assert one["input_modalities"] == one["output_modalities"] == ["text", "image"]
    assert one["images"]["conversations"]
    assert (await http.get("/v1/models/both")).json() == one
    chat.counts.open = images.counts.open = 3
    metrics = (await http.get("/metrics")).text
    assert metrics.count('cantata_admission_running{model="both"} 3.0') == 1


async def test_what_a_model_that_does_both_drew_is_context_for_its_answer(
    http: httpx.AsyncClient, both: tuple[FakeChatModel, FakeImageModel]
) -> None:
    chat, _ = both
    picture = (await answered(http, asking(model="both")))["choices"][0]["message"]
    question = {"role": "user", "content": "What is it?"}
    messages = [{"role": "user", "content": "A red house."}, picture, question]
    answer = await answered(http, {"model": "both", "messages": messages})
    assert answer["choices"][0]["message"]["content"] == "What is it?"
    (request,) = chat.counts.requests
    (shown,) = (p for m in request.messages for p in m.parts if isinstance(p, ImagePart))
    np.testing.assert_array_equal(shown.pixels, decode_picture(picture["images"][0]))


async def test_a_model_that_only_draws_needs_no_modalities(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    assert (
        "images"
        in (await answered(http, asking(modalities=None, model="muse")))["choices"][0]["message"]
    )
    assert muse.counts.finished == 1
    # Without a name, the first that answers in text, as ever.
    answer = await answered(http, asking(modalities=None))
    assert (answer["model"], answer["choices"][0]["message"]["content"]) == (
        "omni",
        "A red house.",
    )
    listed = (await http.get("/v1/models")).json()["data"]
    draws = {one["id"]: one["images"]["conversations"] for one in listed if one["images"]}
    assert draws == {"painter": False, "editor": False, "muse": True}


NO_WORDS = {"role": "user", "content": [part(SHOWN)]}
SOUND = {"type": "input_audio", "input_audio": {"data": "YQ==", "format": "wav"}}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        (asking(modalities=["image", "audio"]), "modalities", 'valid: ["text", "image"]'),
        (asking(model="omni"), "modalities", "models that do: muse"),
        (asking(model="painter"), "modalities", "models that do: muse"),
        (asking(NO_WORDS), "messages[0].content", "no text"),
        (asking({"role": "user", "content": [SOUND]}), "messages[0].content[0].type", "audio"),
        (
            asking({"role": "user", "content": [part(SHOWN)] * 3}),
            "messages",
            "3 pictures; muse takes up to 2",
        ),
        (
            asking({"role": "assistant", "images": [{"type": "image_url"}]}),
            "messages[0].images[0].image_url",
            "required",
        ),
        (
            asking(
                {
                    "role": "assistant",
                    "images": [{"type": "image_url", "image_url": {"url": "data:image/png,a"}}],
                }
            ),
            "messages[0].images[0].image_url",
            "base64",
        ),
        (asking(tools=[TOOL]), "tools", "valid: []"),
        (asking(image_config={"size": "5x5"}), "image_config.size", "multiples of 16"),
        (asking(image_config={"size": 5}), "image_config.size", "string"),
        (
            asking(image_config={"num_inference_steps": 99}),
            "image_config.num_inference_steps",
            "1 to 10",
        ),
        (
            asking(image_config={"output_compression": 5}),
            "image_config.output_compression",
            "png is lossless",
        ),
        (asking({"role": "user", "content": "\x00"}), "messages", "no word for it"),
    ],
)
async def test_what_cannot_be_drawn_is_refused_by_its_place(
    http: httpx.AsyncClient, muse: FakeImageModel, body: Json, param: str, said: str
) -> None:
    for stream in (False, True):
        error = await refused(http, {**body, "stream": stream})
        assert error["param"] == param
        assert said in error["message"]
    assert muse.counts.open == muse.counts.finished == 0


async def test_without_a_model_that_draws_in_conversations_none_is_found(
    http: httpx.AsyncClient,
) -> None:
    error = await refused(http, asking(), 404)
    assert error["code"] == "model_not_found"


async def test_a_full_model_says_when_to_come_back(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    muse.behaviour.full = True
    response = await http.post(CHAT, json=asking())
    assert response.status_code == 429
    assert response.headers["retry-after"] == "3"


async def test_a_full_model_that_writes_does_not_keep_others_from_drawing(
    server: Server, http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    server.service.omni.behaviour.full = server.service.reader.behaviour.full = True
    assert (await http.post(CHAT, json=asking(modalities=None))).status_code == 429
    await answered(http, asking())
    muse.behaviour.full = True
    rejected = await http.post(CHAT, content=b"no JSON")
    assert rejected.status_code == 429


async def test_a_fault_before_the_first_event_is_an_http_error_and_later_the_last_event(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    muse.behaviour.fail_after, muse.behaviour.error = 1, RequestFailed("the stage gave up")
    assert (await refused(http, asking(), 500))["message"] == "the stage gave up"
    response = await http.post(CHAT, json=asking(stream=True))
    assert response.status_code == 200
    last = json.loads(response.text.split("\n\n")[-2].removeprefix("data: "))
    assert last["error"]["message"] == "the stage gave up"
    assert "[DONE]" not in response.text


async def test_one_who_leaves_ends_the_picture(
    http: httpx.AsyncClient, muse: FakeImageModel
) -> None:
    muse.behaviour.may_continue = asyncio.Event()
    asked = asyncio.create_task(http.post(CHAT, json=asking()))
    await eventually(lambda: muse.counts.open == 1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await eventually(lambda: muse.counts.open == 0)
    assert muse.counts.aborted == 1


def test_the_fake_draws_every_turn_differently() -> None:
    plain = ImageRequest("a")
    turns = (Turn(Role.USER, (), "b"), Turn(Role.USER, (SHOWN,), ""))
    asked = (plain, *(ImageRequest("a", earlier=(turn,)) for turn in turns))
    assert len({expected_picture(request, 32, 32).tobytes() for request in asked}) == 3
