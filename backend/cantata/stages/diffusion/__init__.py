"""The diffusion stage kind."""

from cantata.stages.diffusion.stage import DiffusionStage, build_stage

__all__ = ["DiffusionStage", "build_stage"]
