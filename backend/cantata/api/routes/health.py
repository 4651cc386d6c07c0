"""GET /health, /ready and /metrics. They answer while the service loads."""

from __future__ import annotations

import gzip
import time
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from cantata import __version__
from cantata.api.context import ApiContext, Context
from cantata.api.openapi import ERRORS, describe_bytes
from cantata.api.schemas import WireModel
from cantata.api.server.drain import GoingAway
from cantata.api.server.lifecycle import NotReady, Phase
from cantata.contract.service import ReplicaReport, StageReport
from cantata.metrics import CONTENT_TYPE


class StageHealth(WireModel):
    """One stage process."""

    model: str
    stage: str
    pid: int
    alive: bool
    unloaded: bool = False
    """The process was ended because nobody used the model; the next request starts it."""
    startup_s: float
    rss_bytes: int
    counts: dict[str, int]
    """What the stage holds, by kind; all zero when idle."""
    restarts: int
    """Restarts since the server's start, including failed attempts."""
    last_death: str | None = None
    """How its process ended the last time, if it did."""
    replica: str | None = None
    """Address of the replica that it belongs to; None: of this server."""
    host: str | None = None
    """Address of the stage host that runs it; None: it runs where its pipeline does."""


class ReplicaHealth(WireModel):
    """A replica that this server uses."""

    address: str
    ready: bool
    draining: bool
    streams: int
    """This server's open requests on the replica."""
    lost: int
    """How often the link to the replica was lost."""
    message: str | None = None
    """What is wrong with the replica."""


class Health(WireModel):
    """GET /health."""

    status: Literal["starting", "ok", "degraded", "stopping", "failed", "stopped"]
    version: str
    uptime_s: float
    default_model: str
    stages: list[StageHealth]
    replicas: list[ReplicaHealth] = Field(default_factory=list)
    """Empty unless the models run elsewhere."""
    message: str | None = None
    """Why it failed, or what an operator should look at."""


class Readiness(WireModel):
    """GET /ready, when it is."""

    ready: Literal[True] = True


router = APIRouter(tags=["health"], responses=ERRORS)

Status = Literal["starting", "ok", "degraded", "stopping", "failed", "stopped"]


@router.get("/health")
async def health(context: Context, response: Response) -> Health:
    """Whether server, stages and replicas are alive. 503 only when it cannot recover."""
    reports = await context.service.collect_stage_reports()
    replicas = context.service.get_replica_reports()
    status = _find_status(context, reports, replicas)
    if status == "failed":
        response.status_code = 503
    return Health(
        status=status,
        version=__version__,
        uptime_s=round(time.monotonic() - context.started_at, 3),
        default_model=context.service.default_model,
        stages=[_build_stage_health(report) for report in reports],
        replicas=[_build_replica_health(report) for report in replicas],
        message=context.lifecycle.error or _find_trouble(reports, replicas),
    )


@router.get("/ready")
async def ready(context: Context) -> Readiness:
    """200 when every model accepts requests, else 503."""
    if context.drain.started:
        raise GoingAway()
    context.lifecycle.check()
    if not context.service.ready:
        raise NotReady(context.service.trouble)
    return Readiness()


@router.get("/metrics", response_class=Response, responses=describe_bytes("text/plain"))
async def metrics(context: Context, request: Request) -> Response:
    """Prometheus' text format, compressed for clients that accept gzip: a ninth of the bytes."""
    reports = await context.service.collect_stage_reports()
    admissions = {name: model.admission for name, model in context.service.models.items()}
    admissions |= {name: model.admission for name, model in context.service.chat_models.items()}
    admissions |= {name: model.admission for name, model in context.service.image_models.items()}
    listening = context.service.transcription_models
    admissions |= {name: model.admission for name, model in listening.items()}
    body = context.metrics.render(reports, admissions, context.service.get_replica_reports())
    headers = {"content-type": CONTENT_TYPE, "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, compresslevel=6)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


def _find_status(
    context: ApiContext, reports: list[StageReport], replicas: list[ReplicaReport]
) -> Status:
    match context.lifecycle.phase:
        case Phase.FAILED:
            return "failed"
        case Phase.STOPPED:
            return "stopped"
        case Phase.NEW | Phase.STARTING:
            return "starting"
        case Phase.STARTED if context.drain.started:
            return "stopping"
        case Phase.STARTED:
            alive = all(report.alive or report.unloaded for report in reports)
            linked = all(report.ready for report in replicas)
            return "ok" if context.service.ready and alive and linked else "degraded"


def _find_trouble(reports: list[StageReport], replicas: list[ReplicaReport]) -> str | None:
    troubles = [f"{report.stage}: {report.trouble}" for report in reports if report.trouble]
    troubles += [f"replica {one.address}: {one.trouble}" for one in replicas if one.trouble]
    return "; ".join(troubles) or None


def _build_stage_health(report: StageReport) -> StageHealth:
    return StageHealth(
        model=report.model,
        stage=report.stage,
        pid=report.pid,
        alive=report.alive,
        unloaded=report.unloaded,
        startup_s=report.startup_s,
        rss_bytes=report.rss_bytes,
        counts=dict(report.counts),
        restarts=report.restarts,
        last_death=report.last_death,
        replica=report.replica or None,
        host=report.host or None,
    )


def _build_replica_health(report: ReplicaReport) -> ReplicaHealth:
    return ReplicaHealth(
        address=report.address,
        ready=report.ready,
        draining=report.draining,
        streams=report.streams,
        lost=report.lost,
        message=report.trouble,
    )
