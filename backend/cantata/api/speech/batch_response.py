"""Many texts as one response: a line with a file, or an error, for each when it is ready."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.schemas import BatchFailure, BatchItem, BatchResult, ErrorDetail
from cantata.api.speech.framing import build_usage
from cantata.api.speech.validated_request import validate_request
from cantata.api.speech.voice_choice import choose_model
from cantata.api.speech.whole import SpokenFile, speak_file
from cantata.contract.data.errors import CantataError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/x-ndjson"
_AT_A_TIME = 4
"""Items of one batch that are spoken at the same time; this bounds its memory."""


class BatchResponse(StreamedResponse):
    """A line for every item, in order of completion."""

    def __init__(self, context: ApiContext, items: list[BatchItem]) -> None:
        super().__init__(MEDIA_TYPE, {}, context.settings.stall_timeout_s)
        self._context = context
        self._items = items
        self._writing = asyncio.Lock()

    async def stream(self, request_id: str, body: Body) -> None:
        """Write all lines; an item's error is its line, and the other items continue."""
        items = iter(self._items)
        await body.write(b"")
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(_AT_A_TIME, len(self._items))):
                    group.create_task(self._work(items, body), name=f"{request_id}:{number}")
        except* ClientStalled:
            logger.info("the client stopped reading; its utterances are aborted")
        else:
            await body.end()

    async def _work(self, items: Iterator[BatchItem], body: Body) -> None:
        for item in items:
            outcome = await self._build_outcome(item)
            # A file takes four times its size while it is written as text, so one at a time.
            async with self._writing:
                line = await asyncio.to_thread(_encode_line, item.custom_id, outcome)
                await body.write_in_parts(line)

    async def _build_outcome(self, item: BatchItem) -> SpokenFile | ErrorDetail:
        try:
            model = await choose_model(self._context, item.model, item.voice, item.ref_audio)
            validated = await validate_request(self._context, model, item)
            return await speak_file(self._context, validated, item.verify, batch=True)
        except CantataError as error:
            return describe(error).detail


def _encode_line(custom_id: str, outcome: SpokenFile | ErrorDetail) -> bytes:
    line: BatchResult | BatchFailure
    if isinstance(outcome, ErrorDetail):
        line = BatchFailure(custom_id=custom_id, error=outcome)
    else:
        validated = outcome.validated
        line = BatchResult(
            custom_id=custom_id,
            audio=base64.b64encode(outcome.data).decode("ascii"),
            content_type=validated.output.audio_format.media_type,
            sample_rate=validated.output.sample_rate,
            channels=validated.output.channels,
            duration_s=outcome.duration_s,
            usage=build_usage(validated.request.text, outcome.duration_s),
            ignored=list(validated.ignored),
            verification=outcome.verification,
        )
        return line.model_dump_json(exclude_none=True).encode() + b"\n"
    return line.model_dump_json().encode() + b"\n"
