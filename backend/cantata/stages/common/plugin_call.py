"""The edge between a stage and the code of a model's plug-in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cantata.contract.data.errors import CantataError, RequestFailed


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
