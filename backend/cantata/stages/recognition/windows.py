"""The windows of sound that a recognition stage holds, whose turn it is, and the thread in which a
model recognizes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.data.transcripts import TranscriptUpdate
from cantata.contract.model.recognizer import Sound, SpeechRecognizer, SpeechWindow
from cantata.contract.process.stage import Working
from cantata.stages.common.plugin_call import ThreadWorker, Worker, run_batch


@dataclass(slots=True)
class Window:
    """One request's sound, and how far it has been recognized."""

    inputs: StageInput
    batch: bool
    pieces: list[Sound] = field(default_factory=list)
    length: int = 0
    """Samples so far."""
    asked: int | None = None
    """When it was to be recognized, as a number in the order of asking; None: it was not."""
    complete: bool = False
    """No more sound follows."""
    covered: int = -1
    """Samples that `update` covers."""
    update: TranscriptUpdate | None = None
    is_sent: bool = True
    """Whether the client has `update`."""
    chunks: int = 0
    """Chunks that were sent."""

    @property
    def due(self) -> bool:
        """Whether it has sound that is to be recognized."""
        return self.asked is not None and self.covered < self.length

    @property
    def rank(self) -> tuple[bool, bool]:
        """Speakers before files, whole windows before the beginnings of others."""
        return self.batch, not self.complete

    def sound(self) -> Sound:
        """All samples so far."""
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.float32)]
        return self.pieces[0]


def choose_next(windows: Mapping[str, Window], max_windows: int) -> list[tuple[str, Window]]:
    """The windows to be recognized together: those of the first rank that is due, first come, first
    served. One of a later rank would make the others wait. `windows`: by request."""
    due = [item for item in windows.items() if item[1].due]
    first = min((window.rank for _, window in due), default=None)
    chosen = [item for item in due if item[1].rank == first]
    return sorted(chosen, key=lambda item: item[1].asked or 0)[:max_windows]


_FAILURE = "the speech could not be recognized"

WindowOutcome = TranscriptUpdate | CantataError
Running = tuple[str, Window, int]
"""Id, window, samples that are being recognized."""


class Lane:
    """Recognizes one batch at a time. `load`: makes the model when the first window comes, in the
    thread: threads in which the model computes have its niceness, too."""

    def __init__(self, load: Callable[[], SpeechRecognizer], niceness: int) -> None:
        self._load = load
        self._niceness = niceness
        self._model: SpeechRecognizer | None = None
        self._running: list[Running] = []
        self._worker: Worker[Sequence[WindowOutcome]] = Worker()

    @property
    def idle(self) -> bool:
        """Whether it can begin a batch."""
        return self._worker.idle

    @property
    def finished(self) -> bool:
        """Whether results can be taken."""
        return self._worker.finished

    def start_thread(self, working: Working, descriptor: int | None) -> int:
        """Recognize in a thread.

        Args:
            descriptor: another lane's, which then tells of both.

        Returns:
            The descriptor that is readable once results can be taken.
        """
        worker = ThreadWorker[Sequence[WindowOutcome]](working, self._niceness, descriptor)
        self._worker = worker
        return worker.descriptor

    def close(self) -> None:
        """End the thread, if there is one."""
        self._worker.close()

    def begin(self, chosen: Sequence[tuple[str, Window]]) -> None:
        """Recognize the sound that these windows have now."""
        self._running = [(name, window, window.length) for name, window in chosen]
        batch = [SpeechWindow(window.inputs, window.sound()) for _, window in chosen]
        self._worker.start(partial(self._recognize, batch))

    def take(self) -> list[tuple[Running, WindowOutcome]]:
        """What was recognized, and what came of it."""
        running, self._running = self._running, []
        return list(zip(running, self._worker.take(), strict=True))

    def _recognize(self, batch: Sequence[SpeechWindow]) -> Sequence[WindowOutcome]:
        return [_check_outcome(one) for one in run_batch(self._call_model, batch, _FAILURE)]

    def _call_model(self, batch: Sequence[SpeechWindow]) -> Sequence[WindowOutcome]:
        if self._model is None:
            self._model = self._load()
        return self._model.recognize(batch)


def _check_outcome(outcome: object) -> WindowOutcome:
    """The outcome, or what is wrong with it."""
    if isinstance(outcome, TranscriptUpdate | CantataError):
        return outcome
    made = type(outcome).__name__
    return RequestFailed(f"the model made {made}; a recognizer makes TranscriptUpdate")
