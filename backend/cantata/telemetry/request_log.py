"""One line of JSON for each request, written by a thread of its own."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from pathlib import Path
from queue import Full, Queue

from cantata.contract.data.errors import ConfigError
from cantata.telemetry.request_record import RequestRecord, WorkRecord

STANDARD_OUTPUT = Path("-")
MAX_WAITING = 10_000
"""Lines; if a disk is slower for so long, lines are dropped, not requests held up."""

logger = logging.getLogger(__name__)


class RequestLog:
    """Implements `RequestSink`. A file that was moved away, as `logrotate` does, is begun anew.

    Args:
        path: of the file, which is appended to; `STANDARD_OUTPUT`.

    Raises:
        ConfigError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            handler = (
                logging.StreamHandler(sys.stdout)
                if path == STANDARD_OUTPUT
                else WatchedFileHandler(path, encoding="utf-8")
            )
        except OSError as error:
            raise ConfigError(f"--request-log {path}: {error.strerror}") from error
        handler.setFormatter(logging.Formatter("%(message)s"))
        self._lines = Queue[logging.LogRecord](MAX_WAITING)
        self._handler = handler
        self._writer = _DroppingHandler(self._lines)
        self._listener = QueueListener(self._lines, handler)
        self._listener.start()

    def begin(self, record: RequestRecord, headers: Mapping[str, str]) -> None:
        """Nothing to do: the line is written at the end."""

    def worked(self, record: RequestRecord, work: WorkRecord) -> None:
        """Nothing to do: the record has the work."""

    def end(self, record: RequestRecord) -> None:
        """Write the line."""
        line = json.dumps(describe(record), ensure_ascii=False)
        self._writer.handle(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        """Write what waits."""
        self._listener.stop()
        self._handler.close()
        if self._writer.dropped:
            logger.warning("%d lines of the request log were dropped", self._writer.dropped)


def describe(record: RequestRecord) -> dict[str, object]:
    """The fields of a line; those that do not apply are null."""
    began = datetime.fromtimestamp(record.began_unix_ns / 1e9, UTC)
    return {
        "time": began.isoformat(timespec="milliseconds"),
        "request_id": record.request_id,
        "trace_id": record.trace_id,
        "method": record.method,
        "route": record.route or None,
        "status": record.status,
        "close_code": record.close_code,
        "error": record.error,
        "duration_s": round(record.duration_s, 4),
        "models": record.models,
        "works": record.works,
        "ttfp_s": None if record.ttfp_s is None else round(record.ttfp_s, 4),
        "sound_s": round(record.sound_s, 3),
    }


class _DroppingHandler(QueueHandler):
    """Drops what the queue has no room for."""

    dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except Full:
            self.dropped += 1
