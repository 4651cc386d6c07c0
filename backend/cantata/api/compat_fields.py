"""Options that no model here has: accepted at the values that change nothing."""

from __future__ import annotations

import json
from typing import Any

from pydantic import AfterValidator


def accepts_only(*valid: Any) -> AfterValidator:
    """Accepts these values alone; the error lists them."""
    shown = " or ".join(map(json.dumps, valid))

    def check(sent: Any) -> Any:
        if sent not in valid:
            raise ValueError(f"not supported by any model here; valid: {shown}")
        return sent

    return AfterValidator(check)
