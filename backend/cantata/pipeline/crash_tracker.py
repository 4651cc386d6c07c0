"""Tracks which open requests may have ended a stage process."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import Quarantined
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.stage_process import Death
from cantata.scheduling.quarantine import Quarantine, SerialRetryQueue, hash_content

logger = logging.getLogger(__name__)

_VMSTAT = Path("/proc/vmstat")


class CrashTracker:
    """Quarantines requests that end the processes of one pipeline."""

    def __init__(self) -> None:
        self._quarantine = Quarantine()
        self._serial_retries = SerialRetryQueue()
        self._watched: dict[str, bytes] = {}
        """Digests of open requests that have a strike."""
        self._oom_kills = _oom_kills()

    @property
    def quarantined(self) -> int:
        """Requests quarantined since the start."""
        return self._quarantine.total

    def check(self, *content: Any) -> None:
        """Raises Quarantined if the request is quarantined."""
        if self._quarantine:
            self._quarantine.check(hash_content(*content))

    @asynccontextmanager
    async def admit(self, opened: OpenRequest) -> AsyncIterator[None]:
        """Around a request's life: suspects start one at a time. Raises Quarantined: the request is
        quarantined."""
        if not self._quarantine:
            yield
            return
        digest = hash_content(*opened.content)
        self._quarantine.check(digest)
        if self._quarantine.crash_record(digest) is None:
            yield
            return
        await self._serial_retries.wait(opened.request_id)
        self._watched[opened.request_id] = digest
        try:
            self._quarantine.check(digest)  # it may be quarantined by now
            yield
        finally:
            del self._watched[opened.request_id]
            self._serial_retries.give_back(opened.request_id)

    def record_progress(self, opened: OpenRequest) -> None:
        """A request has got further; once it is past its strike, or complete, it is no longer a
        suspect."""
        digest = self._watched.get(opened.request_id)
        if digest is None or self._quarantine.crash_record(digest) is None:
            return
        if opened.complete or self._quarantine.has_passed(digest, opened.frames):
            self._quarantine.clear(digest)
            self._serial_retries.give_back(opened.request_id)

    def record_death(
        self, stage: str, death: Death, requests: Mapping[str, OpenRequest]
    ) -> Mapping[str, Quarantined]:
        """A stage process has died; returns the errors of the requests that caused it.

        Args:
            stage: the process's first; each stage in it reports the same death, so a request that
                an earlier report has failed counts once.
        """
        if not self._implicates(death):
            return {}
        digests = {
            request_id: hash_content(*requests[request_id].content)
            for request_id in death.at_work_on
            if request_id in requests and not requests[request_id].lost
        }
        implicated = {digest: death.at_work_on[name] for name, digest in digests.items()}
        found = self._quarantine.record_death(stage, implicated)
        if found is None:
            return {}
        message = f"this request has ended the {stage} process twice and is rejected from now on"
        names = [name for name, digest in digests.items() if digest == found]
        logger.error("quarantined: requests %s ended stage %s twice", names, stage)
        return {name: Quarantined(message, "input") for name in names}

    def _implicates(self, death: Death) -> bool:
        """Whether the process died of its own work, not of a kill from outside."""
        before, self._oom_kills = self._oom_kills, _oom_kills()
        if death.hang is not None:
            return not death.hang.from_outside
        match death.exit_code:
            case None:
                return False  # it continued; only its connection broke
            case code if code == -signal.SIGTERM:
                return False
            case code if code == -signal.SIGKILL:
                return death.alone or self._oom_kills > before
            case _:
                return True


def _oom_kills() -> int:
    """Processes that the kernel has killed for lack of memory; 0 if it does not report them."""
    try:
        lines = _VMSTAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
