"""Whether one model can be served as it is to be deployed."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata.cli.doctor import Check, Verdict, check_model_numerics
from cantata.config import ArDeployment, CodecDeployment
from cantata.contract.data.errors import CantataError
from cantata.contract.model.pipeline import StageSpec
from cantata.pipeline.plan import ServicePlan, find_services, plan_service
from cantata.stages.codec.decoding import count_spare_slots
from cantata.stages.codec.stage import load_decoder
from cantata.stages.common.device import free_bytes


def needs_vllm(model: str, deploy: Path | None) -> bool:
    """Whether a stage of this machine runs on vLLM; also if nobody knows what is to be served.

    Args:
        model: as `check_model`'s.
        deploy: the same.
    """
    try:
        (plan,) = find_services([model], [] if deploy is None else [deploy])
    except CantataError:
        return True
    here = (deployment for _, deployment in plan.stages if deployment.host is None)
    return any(isinstance(one, ArDeployment) and one.engine == "vllm" for one in here)


def check_model(model: str, deploy: Path | None) -> list[Check]:
    """Its files and deployment, and each decoder with the memory of its slots.

    Args:
        model: as `cantata serve --model`.
        deploy: deployment file; None takes the plug-in's own.
    """
    what = f"model {model}"
    try:
        plan = plan_service(model, deploy)
    except CantataError as error:
        return [Check(what, Verdict.FAILED, str(error), "give a folder that a plug-in knows")]
    stages = ", ".join(f"{spec.name} ({spec.kind.value})" for spec in plan.pipeline.stages)
    known = Check(what, Verdict.OK, f"{plan.located.plugin.name}: {stages}")
    deployed = [(spec, plan.deployment.stages[spec.name]) for spec in plan.pipeline.stages]
    plugin = plan.located.plugin
    # Those of models that ship are checked without `--model`, too.
    measures = plugin.embedded_checkpoint is None and plugin.check_numerics is not None
    numerics = [check_model_numerics(plugin)] if measures else []
    codecs = [(spec, d) for spec, d in deployed if isinstance(d, CodecDeployment)]
    return [
        known,
        *numerics,
        *(_check_decoder(plan, spec, deployment) for spec, deployment in codecs),
    ]


def _check_decoder(plan: ServicePlan, spec: StageSpec, deployment: CodecDeployment) -> Check:
    what, device = f"decoder of {spec.name}", torch.device(deployment.device)
    try:
        decoder = load_decoder(spec, plan.located.checkpoint, device)
    except CantataError as error:
        return Check(what, Verdict.FAILED, str(error), "fetch the checkpoint again")
    if not decoder.slot_bytes:
        return Check(what, Verdict.OK, f"loads; {deployment.slots} slots of little memory")
    spare, free = count_spare_slots(decoder, deployment), free_bytes(device)
    slots = deployment.slots + spare
    needed = decoder.slot_bytes * slots
    found = (
        f"{slots} slots x {decoder.slot_bytes / 1e6:.1f} MB = {needed / 1e9:.2f} GB, "
        f"{free / 1e9:.1f} GB free"
    )
    if needed <= free:
        return Check(what, Verdict.OK, found)
    advice = f"deploy {spec.name} with at most {max(0, free // decoder.slot_bytes - spare)} slots"
    return Check(what, Verdict.FAILED, found, advice)
