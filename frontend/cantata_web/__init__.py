"""The browser page of Cantata, and its Gradio component. They speak only HTTP and WebSocket with
the server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cantata_web.streaming_speech import SpokenText, StreamingSpeech

__all__ = ["SpokenText", "StreamingSpeech"]


def __getattr__(name: str) -> object:
    """The component: imported when it is used, since the page needs no Gradio."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cantata_web import streaming_speech

    return getattr(streaming_speech, name)
