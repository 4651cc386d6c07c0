"""The sessions of one server that can be resumed: each runs on after the request that opened it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from starlette.status import WS_1011_INTERNAL_ERROR

from cantata.api.realtime.resuming.resumable_socket import ResumableSocket
from cantata.api.realtime.server_events import ResumeObject
from cantata.contract.data.errors import Overloaded, SessionNotFound
from cantata.speech_input.settings import ResumingSettings

logger = logging.getLogger(__name__)

_PREFIX = "resume"


@dataclass(frozen=True, slots=True)
class ResumableSession:
    """A session, and who may resume it."""

    token: str
    owner: str
    """Label of the key that opened it; empty: it had none."""
    socket: ResumableSocket


class ResumableSessions:
    """Those that are open, by their tokens, of which only digests are kept."""

    def __init__(self) -> None:
        self._server = secrets.token_hex(4)
        """In every token, so that one of a server that is gone can be told as such."""
        self._open: dict[bytes, ResumableSession] = {}
        self._running: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        return len(self._running)

    def check_room(self, max_sessions: int) -> None:
        """Raises `Overloaded` if `max_sessions` are open."""
        if self.count >= max_sessions:
            raise Overloaded(
                f"{max_sessions} sessions that can be resumed are open, the most that this server "
                "takes; connect without resumable"
            )

    def make(self, limits: ResumingSettings, stall_s: float, owner: str) -> ResumableSession:
        """A session that `start` is to run; arguments as of `ResumableSession` and its socket."""
        token = f"{_PREFIX}_{self._server}_{secrets.token_hex(24)}"
        return ResumableSession(token, owner, ResumableSocket(limits, stall_s))

    def start(
        self,
        session: ResumableSession,
        run: Callable[[], Coroutine[Any, Any, None]],
        held: ExitStack,
    ) -> None:
        """Let a session run."""
        place = _digest(session.token)

        async def run_and_free() -> None:
            try:
                with held:
                    await run()
            except Exception:
                # The edge of the session: no request waits for it any more.
                logger.exception("a session broke")
            finally:
                session.socket.end(WS_1011_INTERNAL_ERROR)
                del self._open[place]

        self._open[place] = session
        task = asyncio.create_task(run_and_free(), name="realtime:session")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def find(self, token: str, owner: str) -> ResumableSession:
        """The session of a token. Raises SessionNotFound: none is open, or another key opened
        it."""
        session = self._open.get(_digest(token))
        if session is not None and session.owner == owner:
            return session
        if token.startswith(f"{_PREFIX}_") and not token.startswith(f"{_PREFIX}_{self._server}_"):
            raise SessionNotFound(
                "this token is not of this server, or of before its restart: its sessions ended "
                "with it; begin another session",
                "resume",
            )
        raise SessionNotFound(
            "no session of this token is open: it has ended, its connection was lost for too long, "
            "or another key opened it; begin another session",
            "resume",
        )

    async def close(self) -> None:
        """End all of them, and wait until nothing of them is left."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def describe_resuming(session: ResumableSession, limits: ResumingSettings) -> ResumeObject:
    """What `session.created` says of it."""
    return ResumeObject(token=session.token, seconds=limits.kept_s)


def _digest(token: str) -> bytes:
    # A lookup by a digest takes a time that tells nothing about other tokens.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
