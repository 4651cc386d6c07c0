"""The one exception tree.

    CantataError
    ├── InvalidRequest          the caller's input; `param` names the field
    │   ├── ModelNotFound
    │   ├── VoiceNotFound
    │   └── ProtocolViolation   a message out of order on a connection
    ├── ConfigError             a deployment file, plug-in or checkpoint that cannot be served
    ├── Overloaded              no capacity now; try again after `retry_after_s`
    ├── RequestFailed           one request's fault inside a stage; every other request goes on
    │   └── ChunkTimeout        an edge stayed silent for too long
    └── StageDied               a stage process is gone, and its requests with it

Errors cross process boundaries by pickle, so each one is rebuilt from its `args` alone.
"""

from __future__ import annotations

from typing import ClassVar


class CantataError(Exception):
    """Base of every error that Cantata raises on purpose."""

    code: ClassVar[str] = "internal_error"
    """Stable machine-readable name, as clients see it."""

    @property
    def message(self) -> str:
        """What went wrong, for a person."""
        return str(self.args[0]) if self.args else self.code


class InvalidRequest(CantataError):
    """The request cannot be served as it is written."""

    code = "invalid_value"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message, param)
        self.param = param

    def __str__(self) -> str:
        return self.message


class ModelNotFound(InvalidRequest):
    """No served model has that name."""

    code = "model_not_found"


class VoiceNotFound(InvalidRequest):
    """The model has no voice of that name."""

    code = "voice_not_found"


class ProtocolViolation(InvalidRequest):
    """A message that the connection's state does not allow."""

    code = "protocol_violation"


class ConfigError(CantataError):
    """A deployment file, plug-in or checkpoint is not usable; says where and what is valid."""

    code = "invalid_config"


class Overloaded(CantataError):
    """The server has no room for another request now."""

    code = "rate_limit_exceeded"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return self.message


class RequestFailed(CantataError):
    """A stage could not finish this request; its other requests are unharmed."""

    code = "request_failed"


class ChunkTimeout(RequestFailed):
    """The request's next chunk did not arrive in time."""

    code = "chunk_timeout"


class StageDied(CantataError):
    """The stage process that held this request has ended."""

    code = "stage_died"
