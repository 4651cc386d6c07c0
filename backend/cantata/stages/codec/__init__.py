"""The codec stage kind."""

from cantata.stages.codec.stage import CodecStage, build_stage

__all__ = ["CodecStage", "build_stage"]
