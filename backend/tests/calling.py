"""A caller of /v1/realtime/calls: a real peer connection, whose microphone plays PCM."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import av
import httpx
import numpy as np
import soxr
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError

from talking import WIRE_RATE, Event, EventLog

RATE = 48_000
_PACKET = RATE // 50
LOUD = 0.01
"""Highest sample, of 1, of a packet that is heard."""


class Microphone(MediaStreamTrack):
    """Silence, and what is played into it."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._queued = bytearray()
        self._sent = 0
        self._begun_at: float | None = None
        self.over = asyncio.Event()
        """Set while nothing is left to send."""
        self.over.set()

    def play(self, sound: bytes) -> None:
        """Say this, s16le at `WIRE_RATE`, after what is being said."""
        wide = soxr.resample(np.frombuffer(sound, "<i2"), WIRE_RATE, RATE)
        self._queued += wide.astype("<i2").tobytes()
        self.over.clear()

    async def recv(self) -> av.AudioFrame:
        loop = asyncio.get_running_loop()
        if self._begun_at is None:
            self._begun_at = loop.time()
        await asyncio.sleep(self._begun_at + self._sent / RATE - loop.time())
        if self.readyState != "live":
            raise MediaStreamError
        packet = bytes(self._queued[: 2 * _PACKET]).ljust(2 * _PACKET, b"\0")
        del self._queued[: 2 * _PACKET]
        if not self._queued:
            self.over.set()
        frame = av.AudioFrame(format="s16", layout="mono", samples=_PACKET)
        frame.planes[0].update(packet)
        frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
        frame.pts = self._sent
        self._sent += _PACKET
        return frame


class Caller(EventLog):
    """One call; `events` has everything that came, `heard` all sound."""

    def __init__(self, peer: RTCPeerConnection) -> None:
        super().__init__()
        self.peer = peer
        self.location = ""
        self.microphone = Microphone()
        self.channel: RTCDataChannel = peer.createDataChannel("oai-events")
        self.heard: list[np.ndarray[Any, np.dtype[np.float32]]] = []
        """Packets of 20 ms, in -1..1, at `RATE`."""
        self.times: list[float] = []
        """When each came, by the loop's clock."""
        self._messages: asyncio.Queue[str | None] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None
        self.channel.on("message", self._messages.put_nowait)
        self.channel.on("close", lambda: self._messages.put_nowait(None))
        peer.on("track", self._listen)
        peer.addTrack(self.microphone)

    async def send(self, kind: str, **fields: Any) -> None:
        self.channel.send(json.dumps({"type": kind, **fields}))

    async def receive(self) -> Event:
        """The next event.

        Raises:
            ConnectionError: the server has hung up.
        """
        message = await self._messages.get()
        if message is None:
            raise ConnectionError("the channel is closed")
        return dict(json.loads(message))

    def loud_times(self) -> list[float]:
        """When packets came that are heard."""
        return [t for t, one in zip(self.times, self.heard, strict=True) if loudest(one) > LOUD]

    def spoken(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """What was heard, without the silence around it."""
        loud = [i for i, one in enumerate(self.heard) if loudest(one) > LOUD]
        return np.concatenate(self.heard[loud[0] : loud[-1] + 1]) if loud else np.zeros(0, "f4")

    async def vanish(self) -> None:
        """Go without a word, as a machine does that loses its network."""
        for sender in self.peer.getSenders():
            connection = sender.transport.transport.iceGatherer._connection
            await connection.close()

    async def end(self) -> None:
        await self.peer.close()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    def _listen(self, track: MediaStreamTrack) -> None:
        self._listening = asyncio.create_task(self._hear(track))

    async def _hear(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, av.AudioFrame)
            channels = len(frame.layout.channels)
            samples = frame.to_ndarray().reshape(-1, channels).mean(axis=1) / 32768
            self.heard.append(samples.astype(np.float32))
            self.times.append(asyncio.get_running_loop().time())


def loudest(samples: np.ndarray[Any, np.dtype[np.float32]]) -> float:
    return float(np.abs(samples).max(initial=0))


async def offer(peer: RTCPeerConnection) -> str:
    """An offer with all candidates."""
    await peer.setLocalDescription(await peer.createOffer())
    return str(peer.localDescription.sdp)


@asynccontextmanager
async def caller(
    url: str,
    query: str = "",
    *,
    trickle: bool = False,
    headers: Mapping[str, str] = MappingProxyType({}),
    **session: Any,
) -> AsyncIterator[Caller]:
    """A call whose session has been created.

    Args:
        url: of the server.
        query: behind the path.
        trickle: offer no addresses, as browsers do that gather theirs later.
        headers: of the request.
        session: settings, sent with the offer.
    """
    one = Caller(RTCPeerConnection(RTCConfiguration(iceServers=[])))
    try:
        sdp = await offer(one.peer)
        if trickle:
            sdp = re.sub(r"^a=(candidate:.*|end-of-candidates)\r\n", "", sdp, flags=re.MULTILINE)
        async with httpx.AsyncClient(timeout=30, headers=headers) as http:
            address = f"{url}/v1/realtime/calls{query}"
            if session:
                form = {"sdp": (None, sdp), "session": (None, json.dumps(session))}
                answer = await http.post(address, files=form)
            else:
                kind = {"content-type": "application/sdp"}
                answer = await http.post(address, content=sdp, headers=kind)
        assert answer.status_code == 201, answer.text
        one.location = answer.headers["location"]
        await one.peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        await one.until("session.created")
        yield one
    finally:
        await one.end()
