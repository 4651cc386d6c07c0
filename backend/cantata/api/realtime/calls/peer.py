"""One call's WebRTC: an offer answered, tracks of sound both ways, and a channel of events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from fractions import Fraction
from typing import Any

import av
import numpy as np
import soxr
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.exceptions import InvalidAccessError, InvalidStateError, OperationError
from aiortc.mediastreams import MediaStreamError
from aiortc.rtcconfiguration import RTCBundlePolicy

from cantata.api.realtime.calls.ice import MediaAddresses
from cantata.api.realtime.calls.offer import CallOffer
from cantata.api.realtime.calls.playout import FRAME_SAMPLES, PLAYOUT_RATE
from cantata.api.sessions.socket import NORMAL
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import InvalidRequest

logger = logging.getLogger(__name__)

SESSION_RATE = 24_000
"""Hz of the sound that the session gets."""
_MAX_WAITING = 1024
"""Messages and frames of sound that may wait; more than any client sends ahead."""
_UNSENT_BYTES = 256 << 10
"""Events that may wait in the data channel."""
_CLOSE_S = 5.0
"""Time for a peer to close: its last events may wait for an acknowledgement."""
_FLUSH_S = 1.0
_GONE = ("failed", "closed")


class ListenerTrack(MediaStreamTrack):
    """What the listener hears: a packet every 20 ms, of silence too, as from a microphone."""

    kind = "audio"

    def __init__(self, take: Callable[[], bytes]) -> None:
        """`take`: gives the next packet's `FRAME_SAMPLES`, s16le."""
        super().__init__()
        self._take = take
        self._begun_at: float | None = None
        self._samples = 0

    async def recv(self) -> av.AudioFrame:
        loop = asyncio.get_running_loop()
        if self.readyState != "live":
            raise MediaStreamError
        if self._begun_at is None:
            self._begun_at = loop.time()
        await asyncio.sleep(self._begun_at + self._samples / PLAYOUT_RATE - loop.time())
        frame = av.AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
        frame.planes[0].update(self._take())
        frame.sample_rate = PLAYOUT_RATE
        frame.pts, frame.time_base = self._samples, Fraction(1, PLAYOUT_RATE)
        self._samples += FRAME_SAMPLES
        return frame


class CallPeer:
    """Implements `MessageSocket`: its text messages are the events of the data channel, its binary
    ones the client's sound, s16le at `SESSION_RATE`."""

    def __init__(self) -> None:
        self._connection = RTCPeerConnection(
            RTCConfiguration(iceServers=[], bundlePolicy=RTCBundlePolicy.MAX_BUNDLE)
        )
        self._channel: RTCDataChannel | None = None
        self._messages: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue(_MAX_WAITING)
        self._opened = asyncio.Event()
        self._drained = asyncio.Event()
        self._gone = asyncio.Event()
        self._receive_task: asyncio.Task[None] | None = None
        self._wants_channel = False

    async def answer(
        self, offer: CallOffer, take: Callable[[], bytes], where: MediaAddresses
    ) -> str:
        """Answer an offer: from then on the client may connect.

        Args:
            take: gives the next packet of sound for it, as `ListenerTrack` needs it.

        Raises:
            InvalidRequest: it cannot be answered.
            Overloaded: no port is free.
        """
        peer = self._connection
        peer.on("datachannel", self._take_channel)
        peer.on("track", self._take_track)
        peer.on("connectionstatechange", self._follow)
        try:
            await peer.setRemoteDescription(RTCSessionDescription(offer.sdp, "offer"))
            self._wants_channel = peer.sctp is not None
            peer.addTrack(ListenerTrack(take))
            where.apply(peer)
            await peer.setLocalDescription(await peer.createAnswer())
        except (
            ValueError,
            AssertionError,
            LookupError,
            InvalidAccessError,
            InvalidStateError,
            OperationError,
        ) as error:
            # aiortc's parser has no error of its own.
            raise InvalidRequest(
                f"sdp cannot be answered: {error or 'not valid'}", "sdp"
            ) from error
        return str(peer.localDescription.sdp)

    async def wait_until_open(self, limit_s: float) -> bool:
        """Whether events and sound can be exchanged within this time."""
        waits = [asyncio.create_task(one.wait()) for one in (self._opened, self._gone)]
        try:
            await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._opened.is_set() and not self._gone.is_set()

    async def receive(self) -> MutableMapping[str, Any]:
        if self._gone.is_set() and self._messages.empty():
            return {"type": "websocket.disconnect"}
        return await self._messages.get()

    async def send_text(self, data: str) -> None:
        channel = self._channel
        if self._gone.is_set():
            raise RuntimeError("the call is over")
        if channel is None:
            return  # the client wants no events
        while channel.bufferedAmount > _UNSENT_BYTES:
            self._drained.clear()
            await self._drained.wait()
            if self._gone.is_set():
                raise RuntimeError("the call is over")
        try:
            channel.send(data)
        except (InvalidStateError, ValueError) as error:
            logger.info("an event of %d bytes cannot be sent: %s", len(data), error)
            raise RuntimeError("the event cannot be sent") from error

    async def send_bytes(self, data: bytes) -> None:
        """Sound goes to the listener by `Playout`; events are text."""
        raise NotImplementedError

    async def close(self, code: int = NORMAL) -> None:
        """Close, once the client has the last events."""
        channel = self._channel
        try:
            async with asyncio.timeout(_FLUSH_S):
                while channel is not None and channel.bufferedAmount and not self._gone.is_set():
                    self._drained.clear()
                    channel.bufferedAmountLowThreshold = 0
                    await self._drained.wait()
        except TimeoutError:
            logger.debug("the last events of a call were not read")
        await self.end()

    async def end(self) -> None:
        """Close at once; nothing of the call is left."""
        self._mark_gone()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._connection.close()
        except TimeoutError:
            logger.warning("a call's connection did not close within %g s", _CLOSE_S)
        if self._receive_task is not None:
            self._receive_task.cancel()
            await asyncio.wait([self._receive_task])

    def _follow(self) -> None:
        state = self._connection.connectionState
        if state in _GONE:
            self._mark_gone()
        elif state == "connected" and not self._wants_channel:
            self._opened.set()

    def _take_channel(self, channel: RTCDataChannel) -> None:
        if self._channel is not None:
            channel.close()  # a call has one
            return
        self._channel = channel
        channel.bufferedAmountLowThreshold = _UNSENT_BYTES // 2
        channel.on("bufferedamountlow", self._drained.set)
        channel.on("message", self._take_message)
        channel.on("close", self._mark_gone)
        self._opened.set()

    def _take_message(self, message: str | bytes) -> None:
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        try:
            self._messages.put_nowait({"type": "websocket.receive", "text": text})
        except asyncio.QueueFull:
            logger.info("a call's client sends faster than its events can be read")
            self._mark_gone()

    def _take_track(self, track: MediaStreamTrack) -> None:
        if track.kind == "audio" and self._receive_task is None:
            self._receive_task = asyncio.create_task(
                self._receive_audio(track), name="call:receive-audio"
            )

    async def _receive_audio(self, track: MediaStreamTrack) -> None:
        resampler: soxr.ResampleStream | None = None
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, av.AudioFrame)
            if resampler is None:
                resampler = soxr.ResampleStream(frame.sample_rate, SESSION_RATE, 1, quality="LQ")
            sound = resampler.resample_chunk(_mix_to_mono(frame))
            # Where nobody takes it for that long, sound is late, not lost: it waits in the track.
            await self._messages.put({"type": "websocket.receive", "bytes": encode_s16le(sound)})

    def _mark_gone(self) -> None:
        if self._gone.is_set():
            return
        self._gone.set()
        self._drained.set()
        if self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait({"type": "websocket.disconnect"})


def _mix_to_mono(frame: av.AudioFrame) -> np.ndarray[Any, np.dtype[np.float32]]:
    """[N] samples of one channel, in -1..1, of a decoder's interleaved s16."""
    channels = len(frame.layout.channels)
    samples = frame.to_ndarray().reshape(-1, channels).astype(np.float32)
    mixed: np.ndarray[Any, np.dtype[np.float32]] = samples.mean(axis=1) / np.float32(32768)
    return mixed
