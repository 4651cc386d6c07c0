"""How a test asserts a time: on a calm machine, alone, and without luck.

`@timed` is for tests that assert times, rates or shares of CPU, and nothing else. Such a test runs
while no other test does (`lanes.py`). A disturbed attempt is repeated; if the machine is
never calm the test is skipped as "not measured", with what disturbed it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

import pytest

from cantata_bench.noise_guard import (
    ATTEMPTS,
    NotMeasured,
    measure_undisturbed,
    observed,
    wait_for_calm,
)

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


@overload
def timed(test: F) -> F: ...
@overload
def timed(*, one_sided: bool) -> Callable[[F], F]: ...
def timed(test: Callable[..., Any] | None = None, *, one_sided: bool = False) -> Any:
    """Mark a test, sync or async, as one that asserts times.

    Args:
        test: asserts times; may run several times with the same fixtures.
        one_sided: all its assertions are upper bounds, so a pass counts despite
            a disturbance.
    """
    if test is None:
        return functools.partial(timed, one_sided=one_sided)
    mark = pytest.mark.timed
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def attempt_async(*args: Any, **kwargs: Any) -> None:
            attempts = _Attempts(one_sided)
            while attempts.needs_another():
                if attempts.disturbed:
                    await asyncio.to_thread(wait_for_calm)
                with observed() as observation:
                    try:
                        await test(*args, **kwargs)
                    except (AssertionError, TimeoutError) as error:
                        attempts.error = error
                attempts.judge(observation.disturbance)

        return mark(attempt_async)

    @functools.wraps(test)
    def attempt(*args: Any, **kwargs: Any) -> None:
        attempts = _Attempts(one_sided)
        while attempts.needs_another():
            if attempts.disturbed:
                wait_for_calm()
            with observed() as observation:
                try:
                    test(*args, **kwargs)
                except (AssertionError, TimeoutError) as error:
                    attempts.error = error
            attempts.judge(observation.disturbance)

    return mark(attempt)


def measured(measure: Callable[[], R]) -> R:
    """What a fixture measures, on a calm machine; otherwise the tests that use it are skipped."""
    try:
        return measure_undisturbed(measure)
    except NotMeasured as disturbed:
        pytest.skip(f"not measured: {disturbed}")


class _Attempts:
    def __init__(self, one_sided: bool) -> None:
        self._one_sided = one_sided
        self._disturbances: list[str] = []
        self._done = False
        self.error: BaseException | None = None
        """Of the latest attempt."""

    @property
    def disturbed(self) -> bool:
        return bool(self._disturbances)

    def needs_another(self) -> bool:
        if self._done:
            return False
        if len(self._disturbances) == ATTEMPTS:
            failed = f" ({self.error})" if self.error else ""
            pytest.skip(f"not measured: {'; '.join(self._disturbances)}{failed}")
        self.error = None
        return True

    def judge(self, disturbance: str) -> None:
        if not disturbance and self.error is not None:
            raise self.error
        self._done = not disturbance or (self._one_sided and self.error is None)
        if not self._done:
            self._disturbances.append(disturbance)
