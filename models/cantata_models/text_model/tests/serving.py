"""A tiny text model as tests serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cantata.pipeline.plan import ServicePlan
from served import plan_small

VOICE = "solo"
QUESTIONS = ("Tell me about the sea, please.", "Why?", "Say it again, and slowly. " * 8)


def small(folder: Path) -> ServicePlan:
    length = {"max_model_len": 1024, "kv_positions": 2048}
    return plan_small(folder, thinker=length)


def body(**fields: Any) -> dict[str, Any]:
    """A greedy request to it."""
    question = {"role": "user", "content": QUESTIONS[0]}
    return {"model": "text-model", "messages": [question], "temperature": 0, **fields}
