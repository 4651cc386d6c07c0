"""Text that arrives while it is spoken, through stage processes: late words, and words that never
come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.contract.data.errors import ChunkTimeout, InvalidRequest
from cantata.contract.data.request import SpeechRequest
from cantata.pipeline.speech_model import PipelineSpeechModel
from tiny_talker.serving import TinyServer, tiny_server

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TIMEOUT_S = 4.0
PIECES = ("The first ", "words, ", "the ", "later ones, and ", "the last.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TinyServer]:
    folder: Path = tmp_path_factory.mktemp("tiny")
    async with tiny_server(folder, slots=4, chunk_timeout_s=TIMEOUT_S) as server:
        yield server


async def pieces(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


async def hear(
    model: PipelineSpeechModel, more_text: AsyncIterator[str] | None, text: str = ""
) -> NDArray[np.float32]:
    request = SpeechRequest(text, "tiny")
    async with model.run(request, more_text=more_text) as utterance:
        return np.concatenate([new.samples async for new in utterance])


async def test_late_words_are_waited_for_and_spoken_as_the_whole(server: TinyServer) -> None:
    model = server.model
    whole = await hear(model, pieces("".join(PIECES)))
    may_go_on = asyncio.Event()

    async def slowly() -> AsyncIterator[str]:
        for text in PIECES:
            yield text
            await may_go_on.wait()

    speaking = asyncio.create_task(hear(model, slowly()))
    # Another request is served from beginning to end while it waits.
    assert len(await hear(model, None, "Quite another text.")) > 0
    assert not speaking.done()
    assert (await server.held())["talker.slots"] == 1
    may_go_on.set()
    np.testing.assert_array_equal(await speaking, whole)
    assert await server.held() == {}


async def test_words_that_never_come_fail_their_request_alone(server: TinyServer) -> None:
    model = server.model

    async def unfinished() -> AsyncIterator[str]:
        yield PIECES[0]
        await asyncio.Event().wait()

    async def never() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    missing = asyncio.gather(
        hear(model, unfinished()), hear(model, never()), return_exceptions=True
    )
    assert len(await hear(model, None, "Quite another text.")) > 0
    stopped, unbegun = await missing
    assert isinstance(stopped, ChunkTimeout)
    assert isinstance(unbegun, ChunkTimeout)
    assert unbegun.message == "no text for 4 s"
    assert await server.held() == {}
    assert len(await hear(model, pieces("And again."))) > 0


@pytest.mark.parametrize("texts", [(), ("", "")])
async def test_a_text_that_stays_empty_is_rejected(
    server: TinyServer, texts: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidRequest, match="nothing to say"):
        await hear(server.model, pieces(*texts))


async def test_too_much_text_fails_its_request(server: TinyServer) -> None:
    with pytest.raises(InvalidRequest, match="at most 20000"):
        await hear(server.model, pieces("a", "x" * 20_000))
    assert await server.held() == {}
