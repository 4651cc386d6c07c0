"""What an address says of resuming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field

from cantata.contract.data.errors import InvalidRequest

Token = Annotated[str, Field(min_length=1, max_length=128)]


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A session, and what of it a client has received."""

    token: str
    after: str
    """Id of the last event that arrived."""


class ResumeQuery(BaseModel):
    """Asks for a session that can be resumed, or resumes one."""

    resumable: bool = False
    resume: Token | None = None
    """Its token, from `session.created`."""
    after: Token | None = None
    """`event_id` of the last event that the client has received."""

    @property
    def place(self) -> ResumePoint | None:
        """Where to go on; None: a session begins. Raises InvalidRequest: it does not say."""
        if self.resume is None:
            return None
        if self.after is None:
            raise InvalidRequest(
                "resume needs after: the event_id of the last event that was received", "after"
            )
        return ResumePoint(self.resume, self.after)

    def check_unused(self) -> None:
        """Raises `InvalidRequest` where nothing can be resumed."""
        if self.resumable or self.resume is not None:
            raise InvalidRequest(
                "a sideband of a call cannot be resumed; connect to the call again",
                "resumable" if self.resumable else "resume",
            )
