"""The edge between a stage and the code of a model's plug-in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cantata.contract.data.errors import CantataError, RequestFailed

Input = TypeVar("Input")
Output = TypeVar("Output")


@contextmanager
def plugin_call(failure: str) -> Iterator[None]:
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
        with plugin_call(failure):
            outputs = run(batch)
            if len(outputs) != len(batch):
                raise RequestFailed(f"{len(batch)} inputs had {len(outputs)} outputs")
    except CantataError as error:
        if len(batch) == 1:
            return [error]
        return [run_batch(run, [one], failure)[0] for one in batch]
    return outputs
