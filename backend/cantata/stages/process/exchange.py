"""What a stage process receives and sends: the server's messages, and chunks on its edges.

A request's first chunk is stamped with the time. In batch mode all are held until the request's
end, then passed on as one.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cantata.contract.data.chunks import Chunk, Milestone, Payload, concatenate
from cantata.contract.data.errors import RequestFailed
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import Failed, FromStage, Output, ToStage
from cantata.ipc.chunk_message import find_problem as payload_problem
from cantata.ipc.connectors import ChunkSender, MemoryReceiver, SocketReceiver
from cantata.ipc.stage_messages import InvalidStageInput, decode_message, encode_message
from cantata.ipc.wire import BlockingChannel, BrokenChannel


class ChunkAccumulator:
    """Keeps chunks by request and port until the last one, and joins them into one final chunk with
    index 0."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, list[Chunk[Payload]]]] = {}

    def __len__(self) -> int:
        return sum(len(chunks) for ports in self._held.values() for chunks in ports.values())

    def pass_on(self, chunks: Iterable[Chunk[Payload]]) -> list[Chunk[Payload]]:
        """Take new chunks; returns those that are complete."""
        complete = []
        for chunk in chunks:
            ports = self._held.setdefault(chunk.request_id, {})
            ports.setdefault(chunk.port, []).append(chunk)
            if chunk.final:
                complete.append(concatenate(ports.pop(chunk.port)))
                if not ports:
                    del self._held[chunk.request_id]
        return complete

    def drop(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._held.pop(request_id, None)


class FirstChunks:
    """Passes on the milestones of earlier stages and adds this stage's own."""

    def __init__(self, stage: str, ports: Iterable[str]) -> None:
        self._stage = stage
        self._ports = tuple(ports)
        self._before: dict[tuple[str, str], tuple[Milestone, ...]] = {}
        """Of requests and ports whose first chunk has not left."""

    def expect(self, request_id: str) -> None:
        """The stage has accepted this request."""
        for port in self._ports:
            self._before[request_id, port] = ()

    def take(self, chunks: Iterable[Chunk[Payload]]) -> None:
        """Remember the milestones of chunks from upstream, one for each step: a stage with several
        ports sends its own with each."""
        for chunk in chunks:
            for port in self._ports if chunk.milestones else ():
                before = self._before.get((chunk.request_id, port))
                if before is not None:
                    known = {milestone.step for milestone in before}
                    new = tuple(m for m in chunk.milestones if m.step not in known)
                    self._before[chunk.request_id, port] = before + new

    def sign(self, chunks: Iterable[Chunk[Payload]], now_s: float) -> list[Chunk[Payload]]:
        """These chunks leave; a request's first one at each port takes its milestones along."""
        return [self._sign(chunk, now_s) for chunk in chunks]

    def forget(self, request_id: str) -> None:
        """The request is over; unknown ids are fine."""
        for port in self._ports:
            self._before.pop((request_id, port), None)

    def _sign(self, chunk: Chunk[Payload], now_s: float) -> Chunk[Payload]:
        before = self._before.pop((chunk.request_id, chunk.port), None)
        if before is None:
            return chunk
        return replace(chunk, milestones=(*before, Milestone(self._stage, now_s)))


logger = logging.getLogger(__name__)

_OURS = BlockingChannel | SocketReceiver | MemoryReceiver | socket.socket
UNLIMITED_CREDIT = sys.maxsize
"""Samples; more than any request makes."""


class Exchange:
    """The sockets of one stage process, and the chunks that it holds back.

    Args:
        inputs: one for each edge that ends here: its listening socket, or, if it begins in this
            process, its end.
        outputs: by port, the edges that start there.
        client_ports: the ports whose chunks the server gets.
        async_chunk: False holds a request's chunks until its last one.
    """

    def __init__(
        self,
        spec: StageSpec,
        control: BlockingChannel,
        inputs: Iterable[socket.socket | MemoryReceiver],
        outputs: Mapping[str, Sequence[ChunkSender]],
        client_ports: Iterable[str],
        *,
        async_chunk: bool,
    ) -> None:
        self._control = control
        self._watched: int | None = None
        self._name, self._declared = spec.name, spec.ports
        self._outputs = outputs
        self._client_ports = frozenset(client_ports)
        self._hold = None if async_chunk else ChunkAccumulator()
        self._first_chunks = FirstChunks(spec.name, {*outputs, *self._client_ports})
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        for end in inputs:
            self._selector.register(end, selectors.EVENT_READ)

    @property
    def holds_back(self) -> bool:
        """Whether output is held until a request's end."""
        return self._hold is not None

    @property
    def counts(self) -> dict[str, int]:
        return {} if self._hold is None else {"held_chunks": len(self._hold)}

    def watch(self, descriptor: int) -> None:
        """Let `wait` return for this eventfd too."""
        self._watched = descriptor
        self._selector.register(descriptor, selectors.EVENT_READ)

    def wait(self, timeout_s: float | None) -> None:
        """Return when a message can be received, what is watched has happened, or the time is over.
        `timeout_s`: None: never."""
        self._selector.select(timeout_s)

    def messages(self) -> Iterator[ToStage]:
        """The server's messages not yet read. A request whose input is invalid fails at once.
        Raises ConnectionError: the server has exited."""
        while self._control in self._list_readable():
            try:
                message = decode_message(self._control.receive(), packages=None)
            except InvalidStageInput as error:
                self.send(Failed(error.request_id, RequestFailed(str(error))))
                continue
            if not isinstance(message, ToStage):
                raise BrokenChannel(f"a server does not send {type(message).__name__}")
            yield message

    def send(self, message: FromStage) -> None:
        """Tell the server. Raises ConnectionError: the server has exited."""
        self._control.send(*encode_message(message))

    def edges(self) -> list[object]:
        """The ends of edges with messages, to be passed to `chunks`."""
        return [end for end in self._list_readable() if end is not self._control]

    def chunks(self, ends: Iterable[object]) -> Iterator[list[Chunk[Payload]]]:
        """One message of each end; new connections are only accepted."""
        for end in ends:
            if isinstance(end, socket.socket):
                self._accept(end)
            elif isinstance(end, SocketReceiver | MemoryReceiver):
                chunks = self._take_from(end)
                if chunks:
                    yield chunks

    def expect(self, request_id: str) -> None:
        self._first_chunks.expect(request_id)

    def forget(self, request_id: str) -> None:
        """The request ended before its last chunk; unknown ids are fine."""
        self._first_chunks.forget(request_id)
        if self._hold is not None:
            self._hold.drop(request_id)

    def find_problem(self, chunk: Chunk[Payload]) -> str | None:
        """Why this chunk of the stage cannot be sent; None if it can."""
        declared = self._declared.get(chunk.port)
        if declared is None:
            ports = list(self._declared)
            return f"stage {self._name!r} made a chunk for port {chunk.port!r}; its ports: {ports}"
        if not isinstance(chunk.payload, declared):
            found = type(chunk.payload).__name__
            return (
                f"stage {self._name!r} made {found} for port {chunk.port!r}, which carries "
                f"{declared.__name__}"
            )
        problem = payload_problem(chunk.payload)
        if problem is not None:
            found = type(chunk.payload).__name__
            return f"stage {self._name!r} made {found} for port {chunk.port!r}, but {problem}"
        return None

    def publish(self, chunks: Iterable[Chunk[Payload]], now_s: float) -> None:
        """Send what a step made."""
        complete = chunks if self._hold is None else self._hold.pass_on(chunks)
        leaving = self._first_chunks.sign(complete, now_s)
        if not leaving:
            return
        for port, senders in self._outputs.items():
            at_port = [chunk for chunk in leaving if chunk.port == port]
            for sender in senders if at_port else ():
                sender.put(at_port)
        for_client = tuple(chunk for chunk in leaving if chunk.port in self._client_ports)
        if for_client:
            self.send(Output(for_client))

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            if isinstance(key.fileobj, _OURS):
                key.fileobj.close()
        self._selector.close()
        for senders in self._outputs.values():
            for sender in senders:
                sender.close()

    def _list_readable(self) -> list[object]:
        ready: list[object] = [key.fileobj for key, _ in self._selector.select(0)]
        if self._watched is not None and self._watched in ready:
            os.eventfd_read(self._watched)
            ready.remove(self._watched)
        return ready

    def _accept(self, listener: socket.socket) -> None:
        try:
            receiver = SocketReceiver(listener)
        except ConnectionError as error:
            logger.warning("%s", error)
        else:
            self._selector.register(receiver, selectors.EVENT_READ)

    def _take_from(self, receiver: SocketReceiver | MemoryReceiver) -> list[Chunk[Payload]]:
        try:
            chunks = receiver.get()
        except ConnectionError as error:  # upstream exited; its successor connects again
            level = logging.WARNING if isinstance(error, BrokenChannel) else logging.DEBUG
            logger.log(level, "an edge was closed: %s", error)
            self._selector.unregister(receiver)
            receiver.close()
            return []
        self._first_chunks.take(chunks)
        return list(chunks)
