"""The recognition stage: speech to text, window by window, also while a window still arrives."""

from cantata.stages.recognition.stage import build_stage, prepare_needs

__all__ = ["build_stage", "prepare_needs"]
