"""Answers the lines of kept batches: a few at a time, until all are answered, or time is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Protocol

from cantata.contract.data.errors import CantataError, get_first_error
from cantata.jobs.batch import BatchLine, BatchStatus, KeptBatch, LineAnswer, LineProblem
from cantata.jobs.batch_input import check_input, read_line
from cantata.jobs.batches import BatchStore
from cantata.jobs.store import JobStopped, JobStore

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 4
_LINES_A_LOOK = 100
_ATTEMPTS = 8
"""At a line that fails by no fault of its own."""
_WAITED_FOR = (429, 503)
"""There is no room, or what answers is loading or starts again; what ends it each time is refused
after the second."""
_FIRST_WAIT_S, _MAX_WAIT_S = 0.5, 30.0


class Answerer(Protocol):
    """Answers requests with what live requests leave."""

    def find_line_limit(self, endpoint: str) -> int:
        """Bytes of the longest line that asks this path."""
        ...

    async def answer(self, batch: KeptBatch, body: dict[str, Any]) -> LineAnswer:
        """The answer to one request of a batch, also if it is a refusal."""
        ...


class AnsweredBatches:
    """Implements `jobs.runner.KeptWork` for batches. `jobs`: tell what changes, and the time."""

    def __init__(self, jobs: JobStore, store: BatchStore, answerer: Answerer) -> None:
        self._jobs = jobs
        self._store = store
        self._answerer = answerer

    async def list_open(self) -> list[str]:
        return await self._store.list_open()

    async def work(self, id: str) -> None:
        batch = await self._store.find(id)
        if batch.status is BatchStatus.VALIDATING and not await self._validate(batch):
            return
        working = asyncio.create_task(self._answer_all(batch), name=f"{id}:lines")
        ending = asyncio.create_task(self._await_end(batch), name=f"{id}:end")
        tasks: tuple[asyncio.Task[Any], ...] = (working, ending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if working.cancelled():
            ending.result()
        else:
            with suppress(JobStopped):
                working.result()
        await self._store.end(id, await self._find_end(id))

    async def fail(self, id: str, code: str, message: str) -> None:
        with suppress(CantataError):
            problem = LineProblem(code, message, None)
            await self._store.end(id, BatchStatus.FAILED, [problem])

    async def delete_expired(self) -> None:
        await self._store.files.delete_expired()
        await self._store.delete_expired()

    async def _validate(self, batch: KeptBatch) -> bool:
        """Read the file; False: it is not valid, and that is the batch's end."""
        path = self._store.files.find_path(batch.input_file)
        limit = self._answerer.find_line_limit(batch.endpoint)
        try:
            found = await check_input(path, batch.endpoint, limit)
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}"
            await self.fail(batch.id, "storage_failed", message)
            return False
        if found.problems:
            await self._store.end(batch.id, BatchStatus.FAILED, found.problems)
            return False
        with suppress(JobStopped):
            await self._store.begin(batch.id, found.lines)
        return True

    async def _answer_all(self, batch: KeptBatch) -> None:
        taking = asyncio.Lock()
        try:
            async with aclosing(self._list_lines(batch.id)) as lines, asyncio.TaskGroup() as group:
                for number in range(LINES_AT_ONCE):
                    answering = self._answer_some(batch, lines, taking)
                    group.create_task(answering, name=f"{batch.id}:{number}")
        except BaseExceptionGroup as errors:
            raise get_first_error(errors) from None
        await self._store.set_finalizing(batch.id)

    async def _answer_some(
        self, batch: KeptBatch, lines: AsyncIterator[BatchLine], taking: asyncio.Lock
    ) -> None:
        path = self._store.files.find_path(batch.input_file)
        while True:
            async with taking:
                line = await anext(lines, None)
            if line is None:
                return
            request = await asyncio.to_thread(read_line, path, line)
            answer = await self._answer_patiently(batch, request["body"])
            await self._store.keep_answer(batch.id, line, answer)

    async def _list_lines(self, id: str) -> AsyncGenerator[BatchLine, None]:
        after = 0
        while lines := await self._store.list_unanswered(id, after, _LINES_A_LOOK):
            for line in lines:
                yield line
            after = lines[-1].number

    async def _answer_patiently(self, batch: KeptBatch, body: dict[str, Any]) -> LineAnswer:
        """Ask; ask again after what passes, and for as long as nobody has room or is ready."""
        failures, wait_s = 0, _FIRST_WAIT_S
        while (answer := await self._answerer.answer(batch, body)).passes:
            failures += answer.status not in _WAITED_FOR
            if failures == _ATTEMPTS:
                break
            logger.info("%s waits %.1f s after %d", batch.id, wait_s, answer.status)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _MAX_WAIT_S)
        return answer

    async def _await_end(self, batch: KeptBatch) -> None:
        """Return when the batch is cancelled, or its time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(batch.expires_at - self._jobs.clock()):
                while True:
                    seen = self._jobs.changes
                    if (await self._store.find(batch.id)).status is BatchStatus.CANCELLING:
                        return
                    await self._jobs.wait(seen)

    async def _find_end(self, id: str) -> BatchStatus:
        """How a batch ends that was not answered to its end."""
        match (await self._store.find(id)).status:
            case BatchStatus.CANCELLING:
                return BatchStatus.CANCELLED
            case BatchStatus.FINALIZING:
                return BatchStatus.COMPLETED
            case _:
                return BatchStatus.EXPIRED
