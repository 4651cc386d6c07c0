"""`StreamingSpeech` for Gradio apps that run where no Cantata is installed."""

from .streaming_speech import SpokenText, StreamingSpeech

__all__ = ["SpokenText", "StreamingSpeech"]
