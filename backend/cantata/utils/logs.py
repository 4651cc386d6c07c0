"""What every process of a server logs, and for which request: as text for people or as JSON.

Work for a request runs inside `log_for_request`. Tasks and worker threads started there belong to
it too, and so do records that libraries write meanwhile.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_OWN_FIELDS = {
    *vars(logging.makeLogRecord({})),
    "message",
    "asctime",
    "request_id",
    "process_title",
}
"""Fields of every record; everything else came with `extra`."""


class LogFormat(StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


@contextmanager
def log_for_request(request_id: str) -> Iterator[None]:
    """Records logged inside are about this request."""
    token = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(token)


def make_work_id() -> str:
    """A unique id for a piece of work; it begins with the id of the request that the work
    is for, so that one search finds the records of all processes."""
    asked, unique = _request_id.get(), uuid.uuid4().hex
    return f"{asked}-{unique[:16]}" if asked else unique


def configure_logging(level: int, log_format: LogFormat, process_title: str) -> None:
    """Set up this process's root logger; once per process.

    Args:
        level: of `logging`; what is below it is not written.
        process_title: who writes, such as `cantata:talker:0`.
    """
    handler = logging.StreamHandler()
    handler.addFilter(_Named(process_title))
    handler.setFormatter(_JsonFormatter() if log_format is LogFormat.JSON else _TextFormatter())
    logging.basicConfig(level=level, handlers=[handler])


class _Named(logging.Filter):
    """Adds to every record who writes it and for which request."""

    def __init__(self, process_title: str) -> None:
        super().__init__()
        self._process_title = process_title

    def filter(self, record: logging.LogRecord) -> bool:
        record.process_title = self._process_title
        record.request_id = _request_id.get()
        return True


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(process_title)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = super().formatMessage(record)
        request_id = vars(record)["request_id"]
        return f"{line} [{request_id}]" if request_id else line


class _JsonFormatter(logging.Formatter):
    """One object on each line; `extra` fields stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = vars(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": fields["process_title"],
            "logger": record.name,
            "message": record.getMessage(),
        }
        if fields["request_id"]:
            line["request_id"] = fields["request_id"]
        line |= {name: value for name, value in fields.items() if name not in _OWN_FIELDS}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
