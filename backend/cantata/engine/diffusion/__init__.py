"""The diffusion stage kind."""

from cantata.engine.diffusion.stage import DiffusionStage, build_stage

__all__ = ["DiffusionStage", "build_stage"]
