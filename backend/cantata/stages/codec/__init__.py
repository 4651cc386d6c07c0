"""The codec stage kind."""

from cantata.stages.codec.needs import prepare_needs
from cantata.stages.codec.stage import CodecStage, build_stage

__all__ = ["CodecStage", "build_stage", "prepare_needs"]
