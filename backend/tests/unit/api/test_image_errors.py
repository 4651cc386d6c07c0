"""POST /v1/images/...: everything that is rejected, and how."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fake_service import FakeService
from test_chat_errors import to_error
from test_images import GENERATIONS, PROMPT, asking

from cantata.api.images.body import MAX_PROMPT_CHARACTERS
from cantata.api.settings import ServerSettings
from images_and_videos import image_file, png_bomb, quarters, webp_bomb

EDITS = "/v1/images/edits"
PNG = image_file(quarters())

BAD_BODIES: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": None}, "prompt", ""),
    ({"prompt": ""}, "prompt", "at least 1"),
    ({"prompt": 5}, "prompt", "string"),
    ({"prompt": "a" * (MAX_PROMPT_CHARACTERS + 1)}, "prompt", "at most 32000"),
    ({"prompt": "\x00"}, "prompt", "no word"),
    ({"model": 5}, "model", "string"),
    ({"model": "editor"}, "model", "/v1/images/edits"),
    ({"n": 0}, "n", "greater"),
    ({"n": 11}, "n", "10"),
    ({"n": "2"}, "n", "integer"),
    ({"size": 512}, "size", "string"),
    ({"size": "big"}, "size", "'auto', or WIDTHxHEIGHT"),
    ({"size": "64X64"}, "size", "WIDTHxHEIGHT"),
    ({"size": "100x64"}, "size", "multiples of 16"),
    ({"size": "64x72"}, "size", "multiples of 16"),
    ({"size": "16x64"}, "size", "at least 32"),
    ({"size": "1024x1024"}, "size", "65536 pixels (as 256x256)"),
    ({"size": "0x64"}, "size", "WIDTHxHEIGHT"),
    ({"size": "9999999999x16"}, "size", "WIDTHxHEIGHT"),
    ({"quality": "best"}, "quality", "'low', 'medium'"),
    ({"background": "transparent"}, "background", 'valid: "auto" or "opaque"'),
    ({"output_format": "gif"}, "output_format", "'png', 'webp' or 'jpeg'"),
    ({"output_compression": 50}, "output_compression", "jpeg or webp"),
    (
        {"output_compression": 101, "output_format": "jpeg"},
        "output_compression",
        "less than or equal to 100",
    ),
    ({"response_format": "url"}, "response_format", 'valid: "b64_json"'),
    ({"stream": "yes"}, "stream", "boolean"),
    ({"partial_images": 2}, "partial_images", '"stream": true'),
    ({"partial_images": 4, "stream": True}, "partial_images", "3"),
    ({"stream_progress": True}, "stream_progress", '"stream": true'),
    ({"moderation": "none"}, "moderation", "'auto' or 'low'"),
    ({"style": "loud"}, "style", "'vivid' or 'natural'"),
    ({"complexity": "most"}, "complexity", "'low', 'medium' or 'high'"),
    ({"user": 5}, "user", "string"),
    ({"seed": -1}, "seed", "greater"),
    ({"seed": 1.5}, "seed", "integer"),
    ({"negative_prompt": ["rain"]}, "negative_prompt", "string"),
    ({"num_inference_steps": 0}, "num_inference_steps", "greater"),
    ({"num_inference_steps": 11}, "num_inference_steps", "valid: 1 to 10"),
    ({"guidance_scale": 0.5}, "guidance_scale", "greater"),
    ({"guidance_scale": 9}, "guidance_scale", "valid: 1 (no guidance) to 8"),
    ({"true_cfg_scale": 9}, "true_cfg_scale", "valid: 1 (no guidance) to 8"),
    ({"deadline_s": 0}, "deadline_s", "greater"),
    ({"priority": "high"}, "priority", "'live' or 'batch'"),
]


@pytest.mark.parametrize(("options", "param", "says"), BAD_BODIES)
async def test_what_is_wrong_and_where(
    asgi: httpx.AsyncClient, options: dict[str, Any], param: str, says: str
) -> None:
    response = await asgi.post(GENERATIONS, json=asking(**options))
    error = to_error(response)
    assert response.status_code == 400, error
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert says in error["message"]
    assert param in error["message"] or param == "model"


async def test_models_that_do_not_draw(asgi: httpx.AsyncClient) -> None:
    for name in ("solo", "omni", "sd-9"):
        response = await asgi.post(GENERATIONS, json=asking(model=name))
        assert response.status_code == 404
        error = to_error(response)
        assert (error["code"], error["param"]) == ("model_not_found", "model")
        assert "painter, editor" in error["message"]


async def test_no_body_and_other_bodies(asgi: httpx.AsyncClient) -> None:
    assert to_error(await asgi.post(GENERATIONS, json={}))["param"] == "prompt"
    assert "JSON" in to_error(await asgi.post(GENERATIONS, content=b"{"))["message"]
    for sent in ({"data": {"prompt": PROMPT}}, {"content": b""}):
        response = await asgi.post(EDITS, **sent)
        assert response.status_code == 400
        assert "multipart/form-data" in to_error(response)["message"]
    broken = await asgi.post(
        EDITS, content=b"--x\r\n", headers={"content-type": "multipart/form-data"}
    )
    assert broken.status_code == 400
    assert "boundary" in to_error(broken)["message"]


def file(data: bytes = PNG, name: str = "image") -> tuple[str, tuple[str, bytes]]:
    return name, ("a.png", data)


BAD_FORMS: list[tuple[dict[str, str], list[tuple[str, tuple[str, bytes]]], str, str]] = [
    ({}, [], "image", "required"),
    ({"prompt": ""}, [file()], "prompt", "at least 1"),
    ({"image": "a.png"}, [file(name="other")], "image", "must be a file"),
    ({"n": "two"}, [file()], "n", "integer"),
    ({"n": "11"}, [file()], "n", "10"),
    ({"size": "17x17"}, [file()], "size", "multiples of 16"),
    ({"seed": "-1"}, [file()], "seed", "greater"),
    ({"stream": "perhaps"}, [file()], "stream", "boolean"),
    ({"partial_images": "1"}, [file()], "partial_images", '"stream": true'),
    ({"guidance_scale": "nan"}, [file()], "guidance_scale", ""),
    ({"response_format": "url"}, [file()], "response_format", "b64_json"),
    ({"input_fidelity": "most"}, [file()], "input_fidelity", "'low' or 'high'"),
    ({"model": "painter"}, [file()], "image", "/v1/images/generations"),
    ({"mask": "data:image/png;base64,aa"}, [file()], "mask", "no model here"),
    ({}, [file(), file(name="mask")], "mask", "no model here"),
    ({}, [file(), file(name="prompt")], "prompt", "not a file"),
    ({}, [file()] * 3, "image", "takes 1 to 2"),
    ({}, [file()] * 17, "image", "up to 16"),
    ({}, [file(b"no picture")], "image", "PNG, JPEG"),
    ({}, [file(b"")], "image", "PNG, JPEG"),
    ({}, [file(), file(PNG[:60])], "image[1]", "PNG, JPEG"),
    ({}, [file(png_bomb(20_000))], "image", "50 million pixels"),
    ({}, [file(webp_bomb(16_000))], "image", "50 million pixels"),
]


@pytest.mark.parametrize(("fields", "files", "param", "says"), BAD_FORMS)
async def test_what_is_wrong_in_a_form_and_where(
    asgi: httpx.AsyncClient,
    fields: dict[str, str],
    files: list[tuple[str, tuple[str, bytes]]],
    param: str,
    says: str,
) -> None:
    # A part that no one reads makes it a form even without a picture.
    parts = [*files, file(name="unknown")]
    response = await asgi.post(EDITS, data={"prompt": PROMPT, **fields}, files=parts)
    error = to_error(response)
    assert response.status_code == 400, error
    assert error["param"] == param
    assert says in error["message"]
    assert param in error["message"]


async def test_larger_files_than_may_be_sent(asgi: httpx.AsyncClient) -> None:
    limit = ServerSettings().media.max_bytes
    for parts, says in (
        ([file(PNG + bytes(limit))], "image is larger"),
        ([file(), file(PNG + bytes(limit - len(PNG)))], "image[1] is larger"),
        ([file(PNG + bytes(limit * 4 // 3 + (2 << 20)))], "the body is larger"),
    ):
        response = await asgi.post(EDITS, data={"prompt": PROMPT}, files=parts)
        assert response.status_code == 413
        assert says in to_error(response)["message"]


async def test_a_server_without_such_models_says_so(asgi: httpx.AsyncClient) -> None:
    service: FakeService = asgi._transport.app.state.context.service  # type: ignore[attr-defined]
    service.image_models = {}
    response = await asgi.post(GENERATIONS, json=asking())
    assert response.status_code == 404
    assert to_error(response)["code"] == "model_not_found"
