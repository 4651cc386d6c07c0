"""POST /v1/images/edits: forms as clients send them, and what the model is shown."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import numpy as np
import pytest
from fake_picture import EDITING, expected_picture
from live_server import Server
from numpy.typing import NDArray
from test_images import PROMPT, decode_pixels

from images_and_videos import image_file, quarters

EDITS = "/v1/images/edits"
FIELDS = {"prompt": PROMPT, "seed": "7"}
EXIF_ORIENTATION = 0x0112


async def edited(
    http: httpx.AsyncClient, files: list[tuple[str, bytes]], **fields: str
) -> dict[str, Any]:
    parts = [(name, ("picture", data)) for name, data in files]
    response = await http.post(EDITS, data={**FIELDS, **fields}, files=parts)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def shown(server: Server) -> list[NDArray[np.uint8]]:
    """What the latest request shows the model."""
    return list(server.service.editor.counts.requests[-1].references)


@pytest.mark.parametrize("names", [("image",), ("image[]",), ("image", "image"), ("image[]",) * 2])
async def test_every_way_to_send_pictures(
    server: Server, http: httpx.AsyncClient, names: tuple[str, ...]
) -> None:
    pictures = [quarters(40, 60), quarters(30, 20)][: len(names)]
    answer = await edited(
        http, [(name, image_file(one)) for name, one in zip(names, pictures, strict=True)]
    )
    for found, sent in zip(shown(server), pictures, strict=True):
        np.testing.assert_array_equal(found, sent)
    (request,) = server.service.editor.counts.requests
    (drawn,) = answer["data"]
    expected = expected_picture(request, *EDITING.default_size)
    np.testing.assert_array_equal(decode_pixels(drawn["b64_json"]), expected)
    assert answer["usage"]["input_tokens_details"] == {
        "text_tokens": 3,
        "image_tokens": 10 * len(names),
    }


@pytest.mark.parametrize("shape", ["url", "base64", "object", "nested", "list", "images"])
async def test_an_edit_may_be_json(server: Server, http: httpx.AsyncClient, shape: str) -> None:
    picture = quarters(40, 60)
    encoded = base64.b64encode(image_file(picture)).decode()
    url = f"data:image/png;base64,{encoded}"
    sent: dict[str, Any] = {  # type: ignore[assignment]
        "url": {"image": url},
        "base64": {"image": encoded},
        "object": {"image": {"type": "image_url", "url": url}},
        "nested": {"image": {"image_url": {"url": url}}},
        "list": {"image": [url, {"b64_json": encoded}]},
        "images": {"images": [{"image_url": url}]},
    }[shape]
    body = {
        "prompt": PROMPT,
        "seed": 7,
        "output_format": "JPG" if shape == "url" else "jpg",
        **sent,
    }
    response = await http.post(EDITS, json=body)
    assert response.status_code == 200, response.text
    assert response.json()["output_format"] == "jpeg"
    assert len(shown(server)) == (2 if shape == "list" else 1)
    for found in shown(server):
        np.testing.assert_array_equal(found, picture)


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({}, "image"),
        ({"image": []}, "image"),
        ({"image": 5}, "image"),
        ({"image": {"id": "x"}}, "image"),
        ({"image": "data:image/png;base64,!!!!"}, "image"),
        ({"image": "data:text/plain;base64,AAAA"}, "image"),
        ({"image": "x", "mask": "y"}, "mask"),
        ({"image": ["data:image/png;base64,AAAA"] * 17}, "image"),
    ],
)
async def test_a_wrong_edit_in_json_is_named(
    http: httpx.AsyncClient, sent: dict[str, Any], param: str
) -> None:
    response = await http.post(EDITS, json={"prompt": PROMPT, **sent})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


async def test_numbers_are_text_and_empty_fields_are_none(
    server: Server, http: httpx.AsyncClient
) -> None:
    answer = await edited(
        http,
        [("image", image_file(quarters()))],
        n="2",
        size="64x32",
        output_format="jpeg",
        output_compression="80",
        guidance_scale="3.5",
        num_inference_steps="6",
        stream="false",
        user="",
        mask="",
        quality="",
        input_fidelity="high",
        deadline_s="30",
    )
    assert len(answer["data"]) == 2
    assert (answer["size"], answer["output_format"]) == ("64x32", "jpeg")
    first, second = server.service.editor.counts.requests
    assert {first.seed, second.seed} == {7, 8}
    assert (first.guidance, first.steps) == (3.5, 6)


@pytest.mark.parametrize(
    ("sent", "read"),
    [("oil", "oil"), ("0.5", 0.5), ("true", True), ("[1, 2]", [1, 2]), ("[1,", "[1,")],
)
async def test_the_options_of_a_model_are_json_or_text(
    server: Server, http: httpx.AsyncClient, sent: str, read: Any
) -> None:
    await edited(http, [("image", image_file(quarters()))], texture=sent, colour="blue")
    (request,) = server.service.editor.counts.requests
    assert request.options == {"texture": read}


async def test_pictures_are_upright_and_what_is_transparent_is_white(
    server: Server, http: httpx.AsyncClient
) -> None:
    from PIL import Image

    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = 6  # To be turned clockwise by a quarter.
    turned = image_file(np.rot90(quarters()), exif=exif)
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    await edited(http, [("image", turned), ("image", image_file(clear))])
    upright, white = shown(server)
    np.testing.assert_array_equal(upright, quarters())
    assert (white == 255).all()


async def test_a_streamed_edit_has_events_of_its_own(http: httpx.AsyncClient) -> None:
    files = {"image": ("a.png", image_file(quarters()))}
    fields = {**FIELDS, "stream": "true", "partial_images": "1", "stream_progress": "true"}
    response = await http.post(EDITS, data=fields, files=files)
    events = [
        json.loads(line.removeprefix("data: "))
        for line in response.text.splitlines()
        if line.startswith("data: ")
    ]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["image_edit.progress", "image_edit.partial_image"]
    assert kinds[-1] == "image_edit.completed"
    (whole,) = (await edited(http, [("image", files["image"][1])]))["data"]
    assert base64.b64decode(events[-1]["b64_json"]) == base64.b64decode(whole["b64_json"])


async def test_memory_of_pictures_is_freed_after_them(
    server: Server, http: httpx.AsyncClient
) -> None:
    await edited(http, [("image", image_file(quarters()))])
    assert server.app.state.context.media.held_bytes == 0
