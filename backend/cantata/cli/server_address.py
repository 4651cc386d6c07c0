"""The server that `--server` names: whether it is an address, and what to say if none answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cantata.cli.files import WrongCall


def check_address(server: str) -> None:
    """Check an address before it is asked. Raises WrongCall: it is none of HTTP."""
    import httpx

    try:
        url = httpx.URL(server)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise WrongCall(f"--server {server}: write an address such as http://127.0.0.1:8000")


@contextmanager
def ask_server(server: str) -> Iterator[None]:
    """Ask a server in the block.

    Raises:
        WrongCall: it is no address.
        ServerError: it cannot be reached, or the connection broke off.
    """
    import httpx

    from cantata.client import ServerError

    check_address(server)
    try:
        yield
    except httpx.TransportError as error:
        raise ServerError(_describe(server, error)) from error
    except ServerError as error:
        # Some clients tell the address and the fault, which they keep as the cause.
        fault = error.__cause__
        if not isinstance(fault, httpx.TransportError | OSError):
            raise
        if not error.message.startswith(server):
            raise
        raise ServerError(_describe(server, fault)) from error


def _describe(server: str, error: Exception) -> str:
    import httpx

    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | OSError):
        return (
            f"{server}: cannot be reached ({reason}); does a server run there? "
            '"cantata serve" starts one'
        )
    return f"{server}: the connection broke off ({reason})"
