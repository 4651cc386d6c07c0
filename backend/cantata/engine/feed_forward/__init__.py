"""The feed-forward stage kind."""

from cantata.engine.feed_forward.stage import FeedForwardStage, build_stage

__all__ = ["FeedForwardStage", "build_stage"]
