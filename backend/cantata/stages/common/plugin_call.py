"""Calls of a plug-in's code: what becomes of its errors, and where it computes, here and now or in
a thread beside the stage's loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.process.stage import Working

Input = TypeVar("Input")
Output = TypeVar("Output")


@contextmanager
def guard_plugin_call(failure: str) -> Iterator[None]:
    """A call for one request into a plug-in, which may raise anything.

    Without this, a fault in one request's text would end the process and with it every other
    request.

    Args:
        failure: begins the error's message.

    Raises:
        RequestFailed: the plug-in raised something that is no `CantataError`.
    """
    try:
        yield
    except CantataError:
        raise
    except Exception as error:
        raise RequestFailed(f"{failure}: {error!r}") from error


def run_batch(
    run: Callable[[Sequence[Input]], Sequence[Output]], batch: Sequence[Input], failure: str
) -> Sequence[Output | CantataError]:
    """A plug-in's outputs for several requests. If it raises, each input is run again by itself: a
    fault of one must not reach the others.

    Args:
        run: the plug-in's, one output for each input.
        batch: at least one input.
        failure: begins the errors' messages.
    """
    try:
        with guard_plugin_call(failure):
            outputs = run(batch)
            if len(outputs) != len(batch):
                raise RequestFailed(f"{len(batch)} inputs had {len(outputs)} outputs")
    except CantataError as error:
        if len(batch) == 1:
            return [error]
        return [run_batch(run, [one], failure)[0] for one in batch]
    return outputs


R = TypeVar("R")


class Worker(Generic[R]):
    """Runs one task at a time, here and now."""

    def __init__(self) -> None:
        self._future: Future[R] | None = None

    @property
    def idle(self) -> bool:
        """Whether it can start a task."""
        return self._future is None

    @property
    def finished(self) -> bool:
        """Whether a result can be taken."""
        return self._future is not None and self._future.done()

    def start(self, task: Callable[[], R]) -> None:
        """Begin a task; the worker is idle."""
        self._future = self._submit(task)

    def take(self) -> R:
        """The result of the task that has finished; whatever it raised is raised."""
        assert self._future is not None
        future, self._future = self._future, None
        return future.result()

    def close(self) -> None:
        """Wait for the task, if any."""

    def _submit(self, task: Callable[[], R]) -> Future[R]:
        future: Future[R] = Future()
        future.set_result(task())
        return future


class ThreadWorker(Worker[R]):
    """Runs one task at a time in a thread.

    Args:
        niceness: of the thread, more than the process's. Otherwise it would take its full share of
            the CPU from talkers and codecs, whose next step a listener waits for.
        descriptor: another worker's, which then says of both that a result can be taken.
    """

    def __init__(self, working: Working, niceness: int, descriptor: int | None = None) -> None:
        super().__init__()
        self._owns_descriptor = descriptor is None
        self.descriptor = os.eventfd(0) if descriptor is None else descriptor
        """Readable once a result can be taken."""
        self._working = working
        # On Linux, niceness is a thread's own, and that of the threads that it starts.
        self._threads = ThreadPoolExecutor(
            1, "stage-worker", initializer=os.nice, initargs=(niceness,)
        )

    def close(self) -> None:
        """Wait for the task, if any, and end the thread."""
        self._threads.shutdown()
        if self._owns_descriptor:
            os.close(self.descriptor)

    def _submit(self, task: Callable[[], R]) -> Future[R]:
        future = self._threads.submit(self._run_marked, task)
        future.add_done_callback(lambda _: os.eventfd_write(self.descriptor, 1))
        return future

    def _run_marked(self, task: Callable[[], R]) -> R:
        with self._working():
            return task()
