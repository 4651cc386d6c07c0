"""Requests of an engine that steps them itself: those that wait, and those that have a lane.

A lane is a request's place in every batch, and its keys and values. Lanes in use stay together: the
last one's request moves where another has left, so a batch is the first lanes, whichever they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Move = Callable[[int, int, int], None]
"""From a lane to another one, so many positions."""


@dataclass(slots=True, eq=False)
class LaneRequest:
    """A request that makes frames."""

    request_id: str
    slot: int
    prompt_len: int
    frames_left: int
    """That may be begun."""
    resumable: bool
    priority: int
    position: int = 0
    """The next that is computed."""
    lane: int | None = None
    """None: it waits for its prompt to be computed."""
    is_held: bool = True
    """False: it has ended, or was aborted; what is still computed of it is dropped."""

    @property
    def steps(self) -> bool:
        """Whether the next batch makes a frame of it."""
        return self.lane is not None and self.frames_left > 0

    @property
    def frame(self) -> int:
        """Index of the frame that its next position makes, once the prompt is computed."""
        return self.position - self.prompt_len + 1


class Lanes:
    """Both sorts of requests, by id.

    Args:
        move: copies what a lane holds.
    """

    def __init__(self, move: Move) -> None:
        self._move = move
        self._runs: dict[str, LaneRequest] = {}
        self._waiting: list[LaneRequest] = []
        self.used: list[LaneRequest] = []
        """By lane."""

    def __len__(self) -> int:
        return len(self._runs)

    def find(self, request_id: str) -> LaneRequest | None:
        """The request, if it is held."""
        return self._runs.get(request_id)

    def add(self, run: LaneRequest) -> None:
        """A new request. Where its prompt is one position, that is a step like any other."""
        self._runs[run.request_id] = run
        if run.prompt_len == 1:
            self._take(run)
        else:
            self._waiting.append(run)

    def list_waiting(self) -> list[LaneRequest]:
        """Requests whose prompts are to be computed, those that a listener waits for first."""
        return sorted(self._waiting, key=lambda run: run.priority)

    def begin(self, run: LaneRequest) -> None:
        """The request waits no longer: its prompt is being computed."""
        self._waiting.remove(run)
        self._take(run)
        run.position = run.prompt_len

    def remove(self, run: LaneRequest) -> None:
        """Forget it; its lane goes to the request of the last one."""
        del self._runs[run.request_id]
        run.is_held = False
        if run.lane is None:
            self._waiting.remove(run)
            return
        last = self.used.pop()
        if last is run:
            return
        assert last.lane is not None
        self._move(last.lane, run.lane, last.position)
        last.lane, self.used[run.lane] = run.lane, last

    def has_work(self) -> bool:
        """Whether a frame can be begun."""
        return bool(self._waiting) or any(run.steps for run in self.used)

    def _take(self, run: LaneRequest) -> None:
        """Give it the next lane."""
        run.lane = len(self.used)
        self.used.append(run)
