"""POST /v1/images/... over a model whose stages are processes: whole, streamed, and left."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import pytest_asyncio
from numpy.typing import NDArray
from PIL import Image

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data import chunks
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from images_and_videos import image_file, quarters
from tiny_painter.plugin import PLUGIN, save_tiny_painter

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
SLOTS = 8
HELD_STEPS = 40
"""Of a slow picture: 2 s alone, and eight of them end within the time that they may wait for one
another, also where the server expects every step to be slow."""


@dataclass(frozen=True)
class Painter:
    """A server, and what it serves."""

    http: httpx.AsyncClient
    url: str
    model: PipelineImageModel


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def painter(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Painter]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_painter(folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    app = create_app(service)
    listener = listen("127.0.0.1", 0)
    server = make_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    url = get_url(listener)
    async with httpx.AsyncClient(base_url=url, timeout=60, verify=False) as client:
        async with asyncio.timeout(120):
            await app.state.context.lifecycle.settled.wait()
        yield Painter(client, url, service.image_models[PLUGIN.name])
    server.stop()
    await serving
    listener.close()


async def drawn(painter: Painter, **options: Any) -> dict[str, Any]:
    response = await painter.http.post(GENERATIONS, json={"prompt": "a house", **options})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def decode_pixels(encoded: str | None) -> NDArray[np.uint8]:
    assert encoded is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))


async def by_the_engine(painter: Painter, request: ImageRequest) -> NDArray[np.uint8]:
    """The same request without HTTP."""
    async with painter.model.run(request) as drawing:
        (pixels,) = [e.pixels async for e in drawing if isinstance(e, chunks.Image)]
    return pixels


async def until_free(painter: Painter) -> None:
    """Wait until no stage holds anything."""
    async with asyncio.timeout(60):
        while True:
            stages = (await painter.http.get("/health")).json()["stages"]
            if not any(any(stage["counts"].values()) for stage in stages):
                return
            await asyncio.sleep(0.01)


async def until_drawing(painter: Painter, pictures: int, asking: asyncio.Task[Any]) -> None:
    """Wait until this many pictures are being drawn; a request that ends before fails the test."""
    async with asyncio.timeout(120):
        while painter.model.admission.running < pictures:
            assert not asking.done(), asking.result().text
            await asyncio.sleep(0.01)


async def metric(painter: Painter, line: str) -> float:
    """The value of a series that has one."""
    text = (await painter.http.get("/metrics")).text
    return sum(float(row.split()[-1]) for row in text.splitlines() if row.startswith(line))


async def test_pictures_are_the_engines_own(painter: Painter) -> None:
    options = {"size": "64x96", "seed": 5, "num_inference_steps": 6, "true_cfg_scale": 2}
    answer = await drawn(painter, n=3, **options)
    for number, picture in enumerate(answer["data"]):
        request = ImageRequest("a house", (), 64, 96, 5 + number, steps=6, guidance=2.0)
        np.testing.assert_array_equal(
            decode_pixels(picture["b64_json"]), await by_the_engine(painter, request)
        )
    assert len({picture["b64_json"] for picture in answer["data"]}) == 3
    assert answer["usage"]["total_tokens"] == len("a house") + 3 * 8 * 12


async def test_more_pictures_than_the_server_has_slots(painter: Painter) -> None:
    """Each takes longer than all are sent in."""
    before = await metric(painter, "cantata_pictures_completed_total")
    answer = await drawn(painter, prompt="SLOW", n=10, seed=1, num_inference_steps=4)
    assert [picture["seed"] for picture in answer["data"]] == list(range(1, 11))
    assert len({picture["b64_json"] for picture in answer["data"]}) == 10
    assert await metric(painter, "cantata_pictures_completed_total") == before + 10
    await until_free(painter)


async def test_a_stream_tells_every_step_it_sees_and_ends_with_the_picture(
    painter: Painter,
) -> None:
    body = {
        "prompt": "SLOW",
        "seed": 2,
        "num_inference_steps": 8,
        "stream": True,
        "partial_images": 3,
        "stream_progress": True,
    }
    kinds, steps, previews, last = [], [], [], {}
    async with painter.http.stream("POST", GENERATIONS, json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                last = json.loads(line.removeprefix("data: "))
                kinds.append(last["type"].removeprefix("image_generation."))
                if kinds[-1] == "progress":
                    steps.append(last["step"])
                elif kinds[-1] == "partial_image":
                    previews.append(decode_pixels(last["b64_json"]))
    assert kinds[-1] == "completed"
    assert steps == sorted(set(steps))
    # What a reader that is late has not taken gives way to what follows.
    assert 1 <= steps[-1] <= 8
    assert 1 <= len(previews) <= 3
    final = decode_pixels(last["b64_json"])
    assert {preview.shape for preview in previews} == {final.shape}
    # From noise to the picture.
    far = [float(np.abs(preview.astype(int) - final).mean()) for preview in previews]
    assert far == sorted(far, reverse=True)
    (whole,) = (await drawn(painter, prompt="SLOW", seed=2, num_inference_steps=8))["data"]
    assert last["b64_json"] == whole["b64_json"]


async def test_a_picture_is_edited(painter: Painter) -> None:
    files = [("image[]", ("a.png", image_file(quarters()))) for _ in range(2)]
    response = await painter.http.post(EDITS, data={"prompt": "a", "seed": "3"}, files=files)
    assert response.status_code == 200, response.text
    answer = response.json()
    request = ImageRequest("a", (quarters(), quarters()), seed=3)
    expected = await by_the_engine(painter, request)
    np.testing.assert_array_equal(decode_pixels(answer["data"][0]["b64_json"]), expected)
    assert answer["usage"]["input_tokens_details"]["image_tokens"] == 2


@pytest.mark.parametrize("options", [{}, {"stream": True}])
async def test_a_client_that_leaves_frees_every_stage(
    painter: Painter, options: dict[str, Any]
) -> None:
    before = await metric(painter, "cantata_pictures_aborted_total")
    body = {"prompt": "SLOW", "n": 4, "num_inference_steps": HELD_STEPS, **options}
    asking = asyncio.create_task(painter.http.post(GENERATIONS, json=body))
    await until_drawing(painter, 4, asking)
    assert await metric(painter, "cantata_pictures_drawing") == 4
    asking.cancel()
    await until_free(painter)
    assert await metric(painter, "cantata_pictures_drawing") == 0
    assert await metric(painter, "cantata_pictures_aborted_total") == before + 4
    assert painter.model.admission.running == 0


async def test_a_full_server_says_when_to_try_again(painter: Painter) -> None:
    body = {"prompt": "SLOW", "n": SLOTS, "num_inference_steps": HELD_STEPS}
    asking = asyncio.create_task(painter.http.post(GENERATIONS, json=body))
    await until_drawing(painter, SLOTS, asking)
    refused = await painter.http.post(GENERATIONS, json={"prompt": "a"})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    asking.cancel()
    await until_free(painter)
    await drawn(painter)


@pytest.mark.parametrize(
    ("prompt", "status", "param"),
    [("UNSPEAKABLE", 400, "prompt"), ("CRASH", 500, None), ("NAN", 500, None)],
)
async def test_faults_and_what_is_left_of_them(
    painter: Painter, prompt: str, status: int, param: str | None
) -> None:
    response = await painter.http.post(GENERATIONS, json={"prompt": prompt, "n": 3})
    assert response.status_code == status
    assert response.json()["error"]["param"] == param
    streamed = await painter.http.post(GENERATIONS, json={"prompt": prompt, "stream": True})
    assert streamed.status_code == (400 if status == 400 else 200)
    assert '"error":' in streamed.text
    await until_free(painter)


async def test_what_takes_longer_than_its_caller_waits(painter: Painter) -> None:
    body = {"prompt": "SLOW", "size": "256x256", "num_inference_steps": 200, "deadline_s": 0.001}
    response = await painter.http.post(GENERATIONS, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "deadline_s"


async def test_openais_client_draws_and_edits(painter: Painter) -> None:
    async with openai.AsyncOpenAI(base_url=f"{painter.url}/v1", api_key="unused") as client:
        stream = await client.images.generate(
            model="gpt-image-2", prompt="SLOW", stream=True, partial_images=2
        )
        events = [event async for event in stream]
        edited = await client.images.edit(
            model=PLUGIN.name, prompt="a", image=image_file(quarters()), size="32x32"
        )
    assert [event.type for event in events] == [
        *["image_generation.partial_image"] * 2,
        "image_generation.completed",
    ]
    assert edited.data is not None
    assert decode_pixels(edited.data[0].b64_json).shape == (32, 32, 3)


async def test_it_is_listed_and_speaks_no_texts(painter: Painter) -> None:
    (model,) = (await painter.http.get("/v1/models")).json()["data"]
    assert (model["id"], model["output_modalities"]) == (PLUGIN.name, ["image"])
    assert model["input_modalities"] == ["text", "image"]
    assert model["images"]["default_size"] == "64x64"
    assert (await painter.http.get("/v1/models/dall-e-3")).json() == model
    refused = await painter.http.post("/v1/audio/speech", json={"input": "hello"})
    assert refused.status_code == 404
