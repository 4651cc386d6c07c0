"""The recognition stage: windows of sound in, transcripts out; speakers go before files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

from cantata.config import RecognitionDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.request import StageInput
from cantata.contract.data.transcripts import SPEECH_RATE, SoundPiece
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import TRANSCRIPT, StageSpec
from cantata.contract.model.recognizer import SpeechRecognizer
from cantata.contract.process.messages import StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.stages.common.intake import check_slot
from cantata.stages.common.needs import count_files
from cantata.stages.recognition.windows import Lane, Window, choose_next

NICENESS_OF_FILES = 10
"""Of the thread that recognizes files. With more, a file would wait very long on a machine that
other programs keep busy."""


def build_stage(
    spec: StageSpec, checkpoint: Path, deployment: RecognitionDeployment
) -> RecognitionStage:
    """Load a plug-in's model and put a stage around it."""
    factory: Callable[..., SpeechRecognizer] = resolve(spec.factory)
    load = partial(factory, checkpoint, deployment.device, deployment.dtype)
    # Elsewhere than on a CPU, a thread's niceness decides nothing, and memory is dear.
    load_for_files = load if deployment.device == "cpu" else None
    return RecognitionStage(load(), deployment, load_for_files)


def prepare_needs(
    spec: StageSpec, checkpoint: Path, deployment: RecognitionDeployment
) -> Callable[[], Mapping[str, int]]:
    """What measures the weights: the files, because a model may be another library's, which says
    nothing before it loads."""
    return partial(count_files, checkpoint)


class RecognitionStage:
    """Implements `contract.process.stage.Stage` over a `SpeechRecognizer`.

    A request is one window. Its sound comes in pieces (`SoundPiece`); each may ask for what has
    been said so far. A window that is complete, and all of whose sound has been recognized already,
    is done at once.

    Files have a lane of their own, which leaves the CPU to others: a speaker waits for none of
    them.

    Args:
        load_for_files: makes another copy of the model when the first window of a file comes. None:
            files share the model with speakers.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self,
        model: SpeechRecognizer,
        deployment: RecognitionDeployment,
        load_for_files: Callable[[], SpeechRecognizer] | None = None,
    ) -> None:
        self._deployment = deployment
        self._max_batch = deployment.max_batch if model.gains_by_batching else 1
        self._max_window_s = model.max_window_s
        self._windows: dict[str, Window] = {}
        self._failed: list[tuple[str, CantataError]] = []
        """Not reported yet."""
        # Whoever speaks waits for the words as others wait for sound.
        self._speakers = self._files = Lane(lambda: model, 0)
        if load_for_files is not None:
            self._files = Lane(load_for_files, NICENESS_OF_FILES)
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
        self._windows[request_id] = Window(payload, batch)

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Take more sound. Raises InvalidRequest: the window would be longer than the model's
        longest."""
        window = self._windows.get(request_id)
        if window is None:
            return  # aborted, or failed
        sound = cast(SoundPiece, payload)
        window.length += len(sound.samples)
        if window.length > round(self._max_window_s * SPEECH_RATE):
            self.abort(request_id)
            raise InvalidRequest(
                f"the window has {window.length / SPEECH_RATE:.1f} s of sound; valid: up to "
                f"{self._max_window_s:g} s"
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
        """Whether a window can be recognized, or a result can be sent."""
        if self._failed or any(lane.finished for lane in self._lanes):
            return True
        if any(not window.is_sent for window in self._windows.values()):
            return True
        return self._choose_next() is not None

    def get_due_in_s(self) -> None:
        """None: only what arrives can make work."""

    def step(self) -> StepResult:
        """Send what is known, and begin the next recognition."""
        self._take_results()
        if (chosen := self._choose_next()) is not None:
            lane, windows = chosen
            lane.begin(windows)
            for _, window in windows:
                window.asked = None
            self._take_results()  # without a thread, it is done at once
        chunks = list(self._iterate_new_chunks())
        failed, self._failed = self._failed, []
        return StepResult(chunks, failed)

    def get_counts(self) -> Mapping[str, int]:
        """Windows held, and seconds of their sound."""
        seconds = sum(window.length for window in self._windows.values()) // SPEECH_RATE
        return {"requests": len(self._windows), "seconds": seconds}

    def start_thread(self, working: Working) -> int:
        """Recognize in threads."""
        descriptor = self._speakers.start_thread(working, None)
        if self._files is not self._speakers:
            self._files.start_thread(working, descriptor)
        return descriptor

    def close(self) -> None:
        """End the threads, if there are any."""
        for lane in reversed(self._lanes):
            lane.close()

    @property
    def _lanes(self) -> tuple[Lane, ...]:
        if self._files is self._speakers:
            return (self._speakers,)
        return self._speakers, self._files

    def _choose_next(self) -> tuple[Lane, Sequence[tuple[str, Window]]] | None:
        """The windows to be recognized next, and where. Nothing of a file begins while speakers
        have their words found: that would only take longer."""
        windows = choose_next(self._windows, self._max_batch)
        if not windows or not self._speakers.idle:
            return None
        lane = self._files if windows[0][1].batch else self._speakers
        return (lane, windows) if lane.idle else None

    def _take_results(self) -> None:
        for lane in self._lanes:
            for (request_id, window, length), outcome in lane.take() if lane.finished else ():
                if self._windows.get(request_id) is not window:
                    continue  # aborted meanwhile
                if isinstance(outcome, CantataError):
                    del self._windows[request_id]
                    self._failed.append((request_id, outcome))
                    continue
                window.update, window.covered, window.is_sent = outcome, length, False
                if length == window.length:  # whatever was asked meanwhile has its answer
                    window.asked = None

    def _iterate_new_chunks(self) -> Iterator[Chunk[Payload]]:
        for request_id, window in list(self._windows.items()):
            if window.is_sent or window.update is None:
                continue
            final = window.complete and window.covered == window.length
            yield Chunk(request_id, TRANSCRIPT, window.chunks, window.update, final)
            window.chunks += 1
            window.is_sent = True
            if final:
                del self._windows[request_id]
