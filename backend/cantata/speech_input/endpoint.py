"""Clients of servers with an OpenAI-compatible HTTP API."""

from __future__ import annotations

import httpx

from cantata.speech_input.settings import Endpoint

_SHOWN = 200
"""Characters of an error's body that are shown."""


def build_client(endpoint: Endpoint, timeout_s: float) -> httpx.AsyncClient:
    """An HTTP client with this endpoint's key.

    Args:
        endpoint: whom it asks; addresses are given in full.
        timeout_s: for each step of an exchange.
    """
    headers = {} if endpoint.key is None else {"authorization": f"Bearer {endpoint.key}"}
    # Reading certificates takes a tenth of a second, in which nothing is sent to anybody.
    secure = endpoint.url.startswith("https:")
    return httpx.AsyncClient(timeout=timeout_s, headers=headers, verify=secure)


def explain(error: Exception) -> str:
    """A failure in one line, without the URL, which may contain a key."""
    if isinstance(error, httpx.HTTPStatusError):
        response = error.response
        shown = response.text[:_SHOWN] if response.is_stream_consumed else ""
        return f"the endpoint answered {response.status_code} {shown}".rstrip()
    if isinstance(error, httpx.TimeoutException):
        return "the endpoint did not answer in time"
    if isinstance(error, httpx.HTTPError):
        return f"the endpoint cannot be reached ({type(error).__name__})"
    return "the endpoint's answer is not in OpenAI's format"
