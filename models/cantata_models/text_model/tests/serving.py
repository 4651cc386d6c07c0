"""A tiny text model as tests serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cantata.pipeline.plan import ServicePlan, plan_service

VOICE = "solo"
QUESTIONS = ("Tell me about the sea, please.", "Why?", "Say it again, and slowly. " * 8)


def small(folder: Path) -> ServicePlan:
    plan = plan_service(str(folder), dtype="float32")
    stages = {
        name: stage.model_copy(update={"slots": 4, "max_model_len": 1024, "kv_positions": 2048})
        for name, stage in plan.deployment.stages.items()
    }
    deployment = plan.deployment.model_copy(update={"stages": stages})
    return ServicePlan(plan.located, plan.pipeline, deployment)


def body(**fields: Any) -> dict[str, Any]:
    """A greedy request to it."""
    question = {"role": "user", "content": QUESTIONS[0]}
    return {"model": "text-model", "messages": [question], "temperature": 0, **fields}
