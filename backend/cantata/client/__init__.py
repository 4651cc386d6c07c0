"""A small client for a running server: text in, samples out while they are made.

    async with connect("http://127.0.0.1:8000", voice="clara") as session:
        async for samples in session.speak("Hello."):
            ...

It uses the protocol as any outside client would, and shares no code with the server.
"""

from cantata.client.speech import (
    KEY_VARIABLE,
    Pcm,
    ServerError,
    Session,
    SpeechStream,
    UtteranceReport,
    connect,
    stream_speech,
)

__all__ = [
    "KEY_VARIABLE",
    "Pcm",
    "ServerError",
    "Session",
    "SpeechStream",
    "UtteranceReport",
    "connect",
    "stream_speech",
]
