"""Which codes may follow those of a request so far, such as a grammar's.

Letters: V codes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class CodeGuide(Protocol):
    """Follows one request's codes 0. Its methods are called by one thread, inside steps, so they
    take microseconds."""

    def allowed(self) -> NDArray[np.bool_] | None:
        """[V]: which codes may be next, at least one. None: any."""
        ...

    def accept(self, code: int) -> None:
        """Take the code that was drawn: one that was allowed."""
        ...
