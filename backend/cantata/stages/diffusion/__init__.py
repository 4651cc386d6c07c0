"""The diffusion stage kind."""

from cantata.stages.diffusion.loading import prepare_needs
from cantata.stages.diffusion.stage import DiffusionStage, build_stage

__all__ = ["DiffusionStage", "build_stage", "prepare_needs"]
