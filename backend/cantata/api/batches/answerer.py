"""Answers the lines of batches by the routes that answer requests, without HTTP between."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from cantata.api import errors
from cantata.api.batches.line_answer import RECORDED_AS, make_answer, refuse
from cantata.api.context import ApiContext
from cantata.api.http.request_id import REQUEST_ID_HEADER, RequestIdMiddleware, make_request_id
from cantata.api.routes import chat, images, responses, speech, transcription
from cantata.api.routing import add_routes
from cantata.contract.data.errors import (
    CantataError,
    FileNotKept,
    InvalidRequest,
    PayloadTooLarge,
)
from cantata.jobs.batch import KeptBatch, LineAnswer
from cantata.jobs.files import FileStore
from cantata.telemetry.request_record import RequestRecord, RequestSink, note_error, recorded
from cantata.utils.logs import log_for_request

logger = logging.getLogger(__name__)

_JSON = "application/json"
_OF_RECORDINGS = ("/v1/audio/transcriptions", "/v1/audio/translations")
_RESPONSES, _EDITS = "/v1/responses", "/v1/images/edits"
_PICTURES = ("image", "images")


class LineAnswerer:
    """Implements `jobs.answering.Answerer`.

    Args:
        limits: bytes of the longest body, by path.
        sinks: take a record of each line.
    """

    def __init__(
        self,
        context: ApiContext,
        files: FileStore,
        limits: Mapping[str, int],
        sinks: Sequence[RequestSink] = (),
    ) -> None:
        self._context = replace(context, spare=True)
        self._files = files
        self._limits = limits
        self._sinks = sinks

    def find_line_limit(self, endpoint: str) -> int:
        settings = self._context.settings
        # A line is held in memory, and a recording on the disk.
        max_held_bytes = settings.max_body_bytes + settings.media.max_bytes * 4 // 3
        return min(self._limits.get(endpoint, settings.max_body_bytes), max_held_bytes)

    async def answer(self, batch: KeptBatch, body: dict[str, Any]) -> LineAnswer:
        request_id = make_request_id()
        record = RequestRecord(request_id, RECORDED_AS, route=batch.endpoint)
        with log_for_request(request_id), recorded(record, self._sinks, {}):
            try:
                answered = await self._post(batch, body, request_id)
            except CantataError as error:
                note_error(error.code)
                answered = refuse(error)
            except Exception as error:
                logger.exception("a line of a batch failed")
                note_error("internal_error")
                answered = refuse(error)
            record.status = answered.status_code
        return await asyncio.to_thread(make_answer, answered, request_id, body, record.sound_s)

    async def _post(
        self, batch: KeptBatch, body: dict[str, Any], request_id: str
    ) -> httpx.Response:
        if body.get("stream") or body.get("stream_format") == "sse":
            param = "stream" if body.get("stream") else "stream_format"
            message = f"{param}: lines of a batch are answered whole; leave it out"
            raise InvalidRequest(message, param)
        if batch.endpoint == _EDITS:
            body = await self._put_pictures(batch, body)
        if batch.endpoint == _RESPONSES:
            # Of many thousand, those that live conversations continue would be forgotten.
            body = {"store": False, **body}
        headers = {REQUEST_ID_HEADER: request_id}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self._app),
            base_url="http://batch",
            headers=headers,
            trust_env=False,
        ) as client:
            if batch.endpoint not in _OF_RECORDINGS or not isinstance(body.get("file"), str):
                content_type = {"content-type": _JSON}
                sent = json.dumps(body).encode()
                return await client.post(batch.endpoint, content=sent, headers=content_type)
            path = await self._find_file(batch, body["file"], "file")
            fields = {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in body.items()
                if name != "file"
            }
            with path.open("rb") as file:
                return await client.post(batch.endpoint, data=fields, files={"file": file})

    async def _put_pictures(self, batch: KeptBatch, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the kept files that it names as base64."""
        left = self._context.settings.media.max_bytes

        async def put(sent: Any) -> Any:
            nonlocal left
            if not (isinstance(sent, dict) and isinstance(sent.get("file_id"), str)):
                return sent
            path = await self._find_file(batch, sent["file_id"], "file_id")
            left -= (await asyncio.to_thread(path.stat)).st_size
            if left < 0:
                max_mib = self._context.settings.media.max_bytes >> 20
                raise PayloadTooLarge(
                    f"all pictures together have at most {max_mib} MiB", "file_id"
                )
            data = await asyncio.to_thread(path.read_bytes)
            return {"b64_json": base64.b64encode(data).decode("ascii")}

        changed = dict(body)
        for name in _PICTURES:
            if isinstance(sent := body.get(name), list):
                changed[name] = [await put(one) for one in sent]
            elif name in body:
                changed[name] = await put(sent)
        return changed

    async def _find_file(self, batch: KeptBatch, id: str, param: str) -> Path:
        try:
            file = await self._files.find(id, batch.owner)
        except FileNotKept as error:
            raise FileNotKept(error.message, param) from None
        return self._files.find_path(file.id)

    @cached_property
    def _app(self) -> RequestIdMiddleware:
        """The routes alone: access and limits were checked when the batch came."""
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.state.context = self._context
        errors.install(app)
        for routes in (speech, transcription, chat, responses, images):
            add_routes(app, routes.router)
        return RequestIdMiddleware(app)
