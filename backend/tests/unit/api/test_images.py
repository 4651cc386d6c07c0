"""POST /v1/images/generations: what is drawn, and how it is answered."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import httpx
import numpy as np
import pytest
from fake_picture import DRAWING, FakeImageModel, draw_preview, expected_picture
from live_server import Server
from numpy.typing import NDArray
from PIL import Image

from cantata.contract.data.errors import RequestFailed

GENERATIONS = "/v1/images/generations"
PROMPT = "a red house"


def asking(**options: Any) -> dict[str, Any]:
    return {"prompt": PROMPT, "seed": 7, **options}


def decode_pixels(encoded: str, kind: str = "PNG") -> NDArray[np.uint8]:
    """[H, W, 3] of a file in base64, read by Pillow, that must be of this kind."""
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        assert image.format == kind
        assert not image.getexif()
        assert image.mode == "RGB"
        return np.asarray(image)


async def drawn(http: httpx.AsyncClient, **options: Any) -> dict[str, Any]:
    response = await http.post(GENERATIONS, json=asking(**options))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def collect_events(http: httpx.AsyncClient, **options: Any) -> list[dict[str, Any]]:
    """A stream's objects; each event is named as its object's type."""
    response = await http.post(GENERATIONS, json=asking(stream=True, **options))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    events = []
    for text in response.text.split("\n\n")[:-1]:
        name, data = text.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1].get('type', 'error')}"
    return events


async def test_a_picture_in_its_own_size(server: Server, http: httpx.AsyncClient) -> None:
    answer = await drawn(http)
    (request,) = server.service.painter.counts.requests
    width, height = DRAWING.default_size
    assert (request.prompt, request.seed, request.width, request.height) == (PROMPT, 7, None, None)
    (picture,) = answer["data"]
    np.testing.assert_array_equal(
        decode_pixels(picture["b64_json"]), expected_picture(request, width, height)
    )
    assert picture["seed"] == 7
    assert answer["size"] == f"{width}x{height}"
    assert (answer["quality"], answer["background"]) == ("medium", "opaque")
    assert answer["output_format"] == "png"
    made = (width // 16) * (height // 16)
    assert answer["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"text_tokens": 3, "image_tokens": 0},
        "output_tokens": made,
        "total_tokens": 3 + made,
    }


async def test_a_model_gets_the_options_of_its_own_and_no_others(
    server: Server, http: httpx.AsyncClient
) -> None:
    await drawn(http, texture={"grain": [1, 2.5]}, colour="blue")
    (request,) = server.service.painter.counts.requests
    assert request.options == {"texture": {"grain": [1, 2.5]}}


async def test_several_pictures_have_seeds_that_follow_each_other(
    server: Server, http: httpx.AsyncClient
) -> None:
    answer = await drawn(http, n=3, size="96x32", negative_prompt="rain", true_cfg_scale=3.5)
    for number, picture in enumerate(answer["data"]):
        (request,) = [r for r in server.service.painter.counts.requests if r.seed == 7 + number]
        assert (request.width, request.height) == (96, 32)
        assert (request.negative_prompt, request.guidance) == ("rain", 3.5)
        np.testing.assert_array_equal(
            decode_pixels(picture["b64_json"]), expected_picture(request, 96, 32)
        )
        assert picture["seed"] == 7 + number
    assert answer["size"] == "96x32"
    assert answer["usage"]["input_tokens"] == 3
    assert answer["usage"]["output_tokens"] == 3 * 6 * 2


async def test_more_pictures_than_slots_are_drawn_in_turn(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.service.painter.behaviour.slots = 2
    answer = await drawn(http, n=10)
    assert len({picture["b64_json"] for picture in answer["data"]}) == 10
    assert server.service.painter.counts.max_open == 2


async def test_without_a_seed_pictures_differ_and_can_be_repeated(
    http: httpx.AsyncClient,
) -> None:
    (first,), (other,) = [(await drawn(http, seed=None))["data"] for _ in range(2)]
    assert first["b64_json"] != other["b64_json"]
    (again,) = (await drawn(http, seed=first["seed"]))["data"]
    assert again == first


@pytest.mark.parametrize(("kind", "name"), [("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP")])
async def test_formats(http: httpx.AsyncClient, kind: str, name: str) -> None:
    answer = await drawn(http, output_format=kind, size="64x64")
    assert answer["output_format"] == kind
    best = decode_pixels(answer["data"][0]["b64_json"], name).astype(int)
    exact = decode_pixels((await drawn(http, size="64x64"))["data"][0]["b64_json"]).astype(int)
    assert np.abs(best - exact).mean() <= {"png": 0, "jpeg": 1, "webp": 4}[kind]
    if kind != "png":
        small = await drawn(http, output_format=kind, size="64x64", output_compression=10)
        assert len(small["data"][0]["b64_json"]) < len(answer["data"][0]["b64_json"])


@pytest.mark.parametrize(
    ("options", "steps", "told"),
    [
        ({}, None, "medium"),
        ({"quality": "standard"}, None, "medium"),
        ({"quality": "low"}, 2, "low"),
        ({"quality": "high"}, 6, "high"),
        ({"quality": "hd"}, 6, "high"),
        ({"quality": "xhigh"}, 8, "xhigh"),
        ({"quality": "max"}, 10, "max"),
        ({"quality": "low", "num_inference_steps": 9}, 9, "low"),
    ],
)
async def test_quality_chooses_the_steps(
    server: Server, http: httpx.AsyncClient, options: dict[str, Any], steps: int | None, told: str
) -> None:
    assert (await drawn(http, **options))["quality"] == told
    assert server.service.painter.counts.requests[0].steps == steps


async def test_guidance_has_two_names(server: Server, http: httpx.AsyncClient) -> None:
    await drawn(http, guidance_scale=2.5)
    await drawn(http, guidance_scale=1, true_cfg_scale=4)
    assert [request.guidance for request in server.service.painter.counts.requests] == [2.5, 4]


async def test_what_changes_nothing_is_accepted(http: httpx.AsyncClient) -> None:
    plain = await drawn(http)
    spoken = await drawn(
        http,
        model="gpt-image-1",
        n=None,
        size="auto",
        background="opaque",
        response_format="b64_json",
        moderation="low",
        style="vivid",
        user="u",
        safety_identifier="s",
        partial_images=0,
        stream=False,
        output_compression=100,
        some_other_servers_option={"a": 1},
    )
    assert spoken["data"] == plain["data"]


async def test_a_stream_without_partial_images_is_the_picture_alone(
    http: httpx.AsyncClient,
) -> None:
    whole = await drawn(http)
    (event,) = await collect_events(http)
    assert event["type"] == "image_generation.completed"
    assert {key: event[key] for key in ("b64_json", "seed")} == whole["data"][0]
    for key in ("size", "quality", "background", "output_format", "usage"):
        assert event[key] == whole[key]
    assert event["image_index"] == 0
    assert "partial_image_index" not in event


async def test_partial_images_are_as_large_as_the_picture_and_in_order(
    server: Server, http: httpx.AsyncClient
) -> None:
    *partial, last = await collect_events(
        http, partial_images=3, size="96x64", output_format="webp"
    )
    assert last["type"] == "image_generation.completed"
    (request,) = server.service.painter.counts.requests
    assert request.previews == 3
    assert [event["partial_image_index"] for event in partial] == [0, 1, 2]
    for number, event in enumerate(partial):
        assert event["type"] == "image_generation.partial_image"
        shown = decode_pixels(event["b64_json"], "WEBP")
        assert shown.shape == (64, 96, 3)
        expected = int(draw_preview(request, number + 1)[0, 0, 0])
        assert np.abs(shown.astype(int) - expected).max() < 6


async def test_progress_is_told_only_on_request(http: httpx.AsyncClient) -> None:
    events = await collect_events(http, n=2, stream_progress=True)
    for index in range(2):
        *steps, last = [event for event in events if event["image_index"] == index]
        assert [(event["step"], event["steps"]) for event in steps] == [(s, 4) for s in range(1, 5)]
        assert {event["type"] for event in steps} == {"image_generation.progress"}
        assert (last["type"], last["seed"]) == ("image_generation.completed", 7 + index)


async def test_a_thought_is_told_and_counted(server: Server, http: httpx.AsyncClient) -> None:
    server.service.painter.behaviour.thought = ("A house, ", "red", "", ".")
    answer = await drawn(http, n=2)
    assert [one["reasoning_content"] for one in answer["data"]] == ["A house, red."] * 2
    squares = DRAWING.default_size[0] * DRAWING.default_size[1] // 16**2
    assert answer["usage"]["output_tokens"] == 2 * (squares + 4)
    *thoughts, last = await collect_events(http)
    assert {event["type"] for event in thoughts} == {"image_generation.reasoning_text.delta"}
    assert [event["delta"] for event in thoughts] == ["A house, ", "red", "."]
    assert last["reasoning_content"] == "A house, red."


async def test_without_a_thought_nothing_speaks_of_one(http: httpx.AsyncClient) -> None:
    assert "reasoning" not in (await http.post(GENERATIONS, json=asking())).text
    assert "reasoning" not in (await http.post(GENERATIONS, json=asking(stream=True))).text


async def test_a_fault_during_a_stream_is_its_last_event(
    server: Server, http: httpx.AsyncClient
) -> None:
    how = server.service.painter.behaviour
    how.fail_after, how.error = 2, RequestFailed("the stage gave up")
    *before, last = await collect_events(http, stream_progress=True)
    assert len(before) == 2
    assert last["error"]["message"] == "the stage gave up"
    assert last["error"]["code"] == "request_failed"
    response = await http.post(GENERATIONS, json=asking(n=3))
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "request_failed"
    counts = server.service.painter.counts
    assert (counts.open, counts.finished) == (0, 0)


async def test_the_caller_may_say_how_long_it_waits_and_that_others_go_first(
    server: Server, http: httpx.AsyncClient
) -> None:
    await drawn(http, deadline_s=30, priority="batch")
    await drawn(http)
    patient, plain = server.service.painter.counts.requests
    assert patient.batch
    assert patient.deadline_s is not None
    assert (plain.batch, plain.deadline_s) == (False, None)


async def test_models_that_draw_are_listed(http: httpx.AsyncClient) -> None:
    listed = {one["id"]: one for one in (await http.get("/v1/models")).json()["data"]}
    painter, editor = listed["painter"], listed["editor"]
    assert (painter["input_modalities"], painter["output_modalities"]) == (["text"], ["image"])
    assert editor["input_modalities"] == ["text", "image"]
    assert painter["images"] == {
        "default_size": "64x48",
        "multiple": 16,
        "min_side": 32,
        "max_pixels": 65536,
        "default_steps": 4,
        "max_steps": 10,
        "default_guidance": 2.0,
        "max_guidance": 8.0,
        "min_references": 0,
        "max_references": 0,
        "negative_prompt": True,
        "options": {"texture": {"type": "object"}},
        "conversations": False,
        "note": "It is a fake.",
    }
    assert listed["solo"]["images"] is None
    assert (await http.get("/v1/models/editor")).json() == editor


async def test_pictures_are_counted(server: Server, http: httpx.AsyncClient) -> None:
    await drawn(http, n=2)
    how = server.service.painter.behaviour
    how.fail_after, how.error = 1, RequestFailed("no")
    await http.post(GENERATIONS, json=asking())
    how.error, how.slots = None, 0
    assert (await http.post(GENERATIONS, json=asking())).status_code == 429
    lines = (await http.get("/metrics")).text.splitlines()
    for line in (
        'cantata_pictures_completed_total{model="painter"} 2.0',
        'cantata_pictures_failed_total{model="painter",reason="failed"} 1.0',
        'cantata_pictures_drawing{model="painter"} 0.0',
        'cantata_picture_steps_total{model="painter"} 9.0',
        'cantata_picture_seconds_count{model="painter"} 2.0',
        'cantata_requests_rejected_total{code="rate_limit_exceeded",model="painter"} 1.0',
        'cantata_slots{model="painter"} 0.0',
    ):
        assert line in lines


async def test_a_full_server_rejects_before_it_reads_the_body(
    server: Server, http: httpx.AsyncClient
) -> None:
    models: list[FakeImageModel] = [server.service.painter, server.service.editor]
    for model in models:
        model.behaviour.full = True
    for path in (GENERATIONS, "/v1/images/edits"):
        response = await http.post(path, content=b"not read")
        assert response.status_code == 429
        assert response.headers["retry-after"] == "3"
        assert response.json()["error"]["code"] == "rate_limit_exceeded"
    server.service.editor.behaviour.full = False
    response = await http.post(GENERATIONS, json=asking())
    assert response.status_code == 429
    assert server.service.painter.counts.requests == []


async def test_the_server_says_what_a_file_declares(http: httpx.AsyncClient) -> None:
    drawn = await http.post("/v1/images/generations", json={"prompt": "a hat"})
    file = base64.b64decode(drawn.json()["data"][0]["b64_json"])
    found = await http.post("/v1/provenance/verify", files={"file": ("a.png", file)})
    assert found.json()["synthetic"] is True
    assert found.json()["confidence"] == "declared"
    refused = await http.post("/v1/provenance/verify", files={"file": ("a.png", b"no")})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_media")
