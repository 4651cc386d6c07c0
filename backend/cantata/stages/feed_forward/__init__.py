"""The feed-forward stage kind."""

from cantata.stages.feed_forward.stage import FeedForwardStage, build_stage, prepare_needs

__all__ = ["FeedForwardStage", "build_stage", "prepare_needs"]
