"""Loads a stage's model as its deployment asks: in this process, or in several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cantata.config import DiffusionDeployment
from cantata.contract.model.denoiser import Denoiser, DenoiserOptions, Ranks
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec
from cantata.stages.common.needs import META, WEIGHTS, count_made


def load_model(factory: str, checkpoint: Path, deployment: DiffusionDeployment) -> Denoiser:
    """Call a plug-in's `factory(checkpoint, options)`. Raises CantataError: it cannot be loaded as
    asked."""
    options = build_denoiser_options(deployment)
    if options.ranks is not None:
        # Imported where it is needed: it imports torch's collectives.
        from cantata.stages.diffusion.ranks.load import load_ranked

        return load_ranked(factory, checkpoint, options)
    load: Callable[[Path, DenoiserOptions], Denoiser] = resolve(factory)
    return load(checkpoint, options)


def prepare_needs(
    spec: StageSpec, checkpoint: Path, deployment: DiffusionDeployment
) -> Callable[[], Mapping[str, int]]:
    """What measures the weights, of which each rank has all; pictures come and go."""
    options = replace(build_denoiser_options(deployment), device=META.type, ranks=None)
    load: Callable[[Path, DenoiserOptions], Denoiser] = resolve(spec.factory)
    return lambda: {WEIGHTS: count_made(lambda: load(checkpoint, options))[1]}


def build_denoiser_options(deployment: DiffusionDeployment) -> DenoiserOptions:
    cache, parallel, hooked = deployment.cache, deployment.parallel, deployment.hooked
    return DenoiserOptions(
        deployment.device,
        deployment.dtype,
        skipping=None if cache is None else cache.skipping(),
        ranks=None if parallel is None else Ranks(parallel.kind, parallel.ranks),
        hooked=None if hooked is None else hooked.options(),
    )
