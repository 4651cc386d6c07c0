"""The recognition stage: windows of sound in, transcripts out; speakers go before files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

import numpy as np

from cantata.config import RecognitionDeployment
from cantata.config.plugins import resolve
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError, InvalidRequest, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.data.transcripts import SPEECH_RATE, SoundPiece, TranscriptUpdate
from cantata.contract.model.pipeline import TRANSCRIPT, StageSpec
from cantata.contract.model.recognizer import Sound, SpeechRecognizer, SpeechWindow
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.stages.common.plugin_call import run_batch
from cantata.stages.common.slots import check_slot
from cantata.stages.common.worker import ThreadWorker, Worker

NICENESS = 5
"""Of the thread that recognises: speech that is heard goes first."""
_FAILURE = "the speech could not be recognised"

Outcome = TranscriptUpdate | CantataError


def build_stage(
    spec: StageSpec, checkpoint: Path, deployment: RecognitionDeployment
) -> RecognitionStage:
    """Load a plug-in's model and put a stage around it."""
    load: Callable[..., SpeechRecognizer] = resolve(spec.factory)
    return RecognitionStage(load(checkpoint, deployment.device, deployment.dtype), deployment)


@dataclass(slots=True)
class _Window:
    """One request's sound, and how far it has been recognised."""

    inputs: StageInput
    batch: bool
    pieces: list[Sound] = field(default_factory=list)
    length: int = 0
    """Samples so far."""
    asked: int | None = None
    """When it was to be recognised, as a number in the order of asking; None: it was not."""
    complete: bool = False
    """No more sound follows."""
    covered: int = -1
    """Samples that `update` covers."""
    update: TranscriptUpdate | None = None
    is_sent: bool = True
    """Whether the client has `update`."""
    chunks: int = 0
    """That were sent."""

    @property
    def due(self) -> bool:
        """Whether it has sound that is to be recognised."""
        return self.asked is not None and self.covered < self.length

    @property
    def urgency(self) -> tuple[bool, bool, int]:
        """Speakers before files, whole windows before the beginnings of others, then first come,
        first served."""
        return self.batch, not self.complete, self.asked or 0

    def sound(self) -> Sound:
        """All samples so far."""
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.float32)]
        return self.pieces[0]


class RecognitionStage:
    """Implements `contract.process.stage.Stage` over a `SpeechRecognizer`.

    A request is one window. Its sound comes in pieces (`SoundPiece`); each may ask for what has
    been said so far. A window that is complete, and all of whose sound has been recognised already,
    is done at once.

    Args:
        model: recognises.
        deployment: its limits.
    """

    reuse = None
    """It keeps no results."""

    def __init__(self, model: SpeechRecognizer, deployment: RecognitionDeployment) -> None:
        self._model = model
        self._deployment = deployment
        self._max_samples = round(model.max_window_s * SPEECH_RATE)
        self._windows: dict[str, _Window] = {}
        self._running: list[tuple[str, _Window, int]] = []
        """What the worker is at: id, window, samples."""
        self._failed: list[tuple[str, CantataError]] = []
        """Not reported yet."""
        self._worker: Worker[Sequence[Outcome]] = Worker()
        self._order = count()

    @property
    def capacity(self) -> StageCapacity:
        """Slots; it makes no frames."""
        return StageCapacity(slots=self._deployment.slots, frame_period_s=None)

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Take a place; the sound follows.

        Raises:
            ProtocolViolation: the id is in use, or there is no input.
            Overloaded: every slot is taken.
        """
        payload = check_slot(request_id, payload, self._windows, self._deployment.slots)
        self._windows[request_id] = _Window(payload, batch)

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Take more sound.

        Raises:
            InvalidRequest: the window would be longer than the model's longest.
        """
        window = self._windows.get(request_id)
        if window is None:
            return  # aborted, or failed
        sound = cast(SoundPiece, payload)
        window.length += len(sound.samples)
        if window.length > self._max_samples:
            self.abort(request_id)
            raise InvalidRequest(
                f"the window has {window.length / SPEECH_RATE:.1f} s of sound; valid: up to "
                f"{self._model.max_window_s:g} s"
            )
        window.pieces.append(sound.samples)
        window.complete = final
        if final or sound.recognize:
            if window.asked is None:  # who asks again keeps its turn
                window.asked = next(self._order)
            # What is known of all its sound is sent again only if it is the last time.
            window.is_sent = window.is_sent and not (final and window.covered == window.length)

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """No edge ends here."""

    def credit(self, request_id: str, samples: int) -> None:
        """This stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Forget the window; a recognition in progress ends unheard."""
        self._windows.pop(request_id, None)
        self._failed = [failed for failed in self._failed if failed[0] != request_id]

    def has_work(self) -> bool:
        """Whether a window can be recognised, or a result can be sent."""
        if self._failed or self._worker.finished:
            return True
        if any(not window.is_sent for window in self._windows.values()):
            return True
        return self._worker.idle and any(window.due for window in self._windows.values())

    def due_in_s(self) -> None:
        """It waits for nothing but what arrives."""

    def step(self) -> StepResult:
        """Send what is known, and begin the next recognition."""
        if self._worker.finished:
            self._take_results()
        if self._worker.idle:
            self._begin()
        if self._worker.finished:  # without a thread, it is done at once
            self._take_results()
        chunks = list(self._new_chunks())
        failed, self._failed = self._failed, []
        return StepResult(chunks, failed)

    def counts(self) -> Mapping[str, int]:
        """Windows held, and seconds of their sound."""
        seconds = sum(window.length for window in self._windows.values()) // SPEECH_RATE
        return {"requests": len(self._windows), "seconds": seconds}

    def start_thread(self, working: Working) -> int:
        """Recognise in a thread."""
        worker = ThreadWorker[Sequence[Outcome]](working, NICENESS)
        self._worker = worker
        return worker.descriptor

    def close(self) -> None:
        """End the thread, if there is one."""
        self._worker.close()

    def _begin(self) -> None:
        due = [item for item in self._windows.items() if item[1].due]
        due.sort(key=lambda item: item[1].urgency)
        chosen = due[: self._deployment.max_batch]
        if not chosen:
            return
        self._running = [(name, window, window.length) for name, window in chosen]
        batch = [SpeechWindow(window.inputs, window.sound()) for _, window in chosen]
        for _, window in chosen:
            window.asked = None
        self._worker.start(partial(self._recognize, batch))

    def _take_results(self) -> None:
        running, self._running = self._running, []
        for (request_id, window, length), outcome in zip(running, self._worker.take(), strict=True):
            if self._windows.get(request_id) is not window:
                continue  # aborted meanwhile
            if isinstance(outcome, CantataError):
                del self._windows[request_id]
                self._failed.append((request_id, outcome))
                continue
            window.update, window.covered, window.is_sent = outcome, length, False
            if length == window.length:  # whatever was asked meanwhile has its answer
                window.asked = None

    def _new_chunks(self) -> Iterator[Chunk[Payload]]:
        for request_id, window in list(self._windows.items()):
            if window.is_sent or window.update is None:
                continue
            final = window.complete and window.covered == window.length
            yield Chunk(request_id, TRANSCRIPT, window.chunks, window.update, final)
            window.chunks += 1
            window.is_sent = True
            if final:
                del self._windows[request_id]

    def _recognize(self, batch: Sequence[SpeechWindow]) -> Sequence[Outcome]:
        return [_check_outcome(one) for one in run_batch(self._model.recognize, batch, _FAILURE)]


def _check_outcome(outcome: object) -> Outcome:
    """The outcome, or what is wrong with it."""
    if isinstance(outcome, TranscriptUpdate | CantataError):
        return outcome
    made = type(outcome).__name__
    return RequestFailed(f"the model made {made}; a recognizer makes TranscriptUpdate")
