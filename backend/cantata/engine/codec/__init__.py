"""The codec stage kind."""

from cantata.engine.codec.stage import CodecStage, build_stage

__all__ = ["CodecStage", "build_stage"]
