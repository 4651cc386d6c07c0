"""Edges keep order and values, and report when the other end has closed."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
import threading
from dataclasses import astuple, replace

import numpy as np
import pytest

from cantata.contract.data.chunks import (
    Chunk,
    Codes,
    Milestone,
    Payload,
    Pcm,
    Rows,
    WordTiming,
    concatenate,
)
from cantata.contract.process.messages import Output
from cantata.ipc.connectors import (
    MemoryReceiver,
    MemorySender,
    SocketReceiver,
    SocketSender,
    listen,
    make_address,
)
from cantata.ipc.stage_messages import decode_message, encode_message
from cantata.ipc.wire import AsyncChannel, BlockingChannel, BrokenChannel
from cantata.stages.process.exchange import ChunkAccumulator
from stage_chunks import codes_chunk, pcm_chunk


def frame_chunk(request_id: str, index: int, final: bool = False) -> Chunk[Codes]:
    codes = np.arange(6, dtype=np.int32).reshape(2, 3) + 100 * index
    words = (WordTiming(index, 0.1 * index, 0.1 * index + 0.05),)
    return codes_chunk(request_id, index, codes, final, words)


def assert_same(left: Chunk[Payload], right: Chunk[Codes]) -> None:
    assert isinstance(left.payload, Codes)
    assert replace(left, payload=right.payload) == right
    assert replace(left.payload, values=right.payload.values) == right.payload
    np.testing.assert_array_equal(left.payload.values, right.payload.values)


def test_an_edge_in_memory_keeps_order_and_is_readable_while_it_holds_a_message() -> None:
    edge = MemoryReceiver()
    sender = MemorySender(edge)

    def is_readable() -> bool:
        return bool(select.select([edge], [], [], 0)[0])

    assert not is_readable()
    for index in range(3):
        sender.put([frame_chunk("a", index)])
    sender.close()
    for index in range(3):
        assert is_readable()
        assert edge.get()[0].index == index
    assert not is_readable()
    edge.close()


def test_a_full_edge_in_memory_makes_its_sender_wait() -> None:
    edge = MemoryReceiver(max_messages=2)
    sender, sent = MemorySender(edge), []

    def send() -> None:
        for index in range(5):
            sender.put([frame_chunk("a", index)])
            sent.append(index)

    thread = threading.Thread(target=send)
    thread.start()
    for index in range(5):
        assert edge.get()[0].index == index
        assert len(sent) <= index + 4  # two wait, one is on its way, and this one has left
    thread.join()
    edge.close()


def test_socket_edge_carries_chunks_larger_than_the_kernels_buffer() -> None:
    address = make_address("edge")
    listener, sender = listen(address), SocketSender(address)
    large = pcm_chunk(
        "a", 0, np.random.default_rng(0).random((1_000_000, 1)).astype(np.float32), True
    )
    thread = threading.Thread(target=sender.put, args=([large],))
    thread.start()
    receiver = SocketReceiver(listener)
    (received,) = receiver.get()
    thread.join()
    assert isinstance(received.payload, Pcm)
    np.testing.assert_array_equal(received.payload.samples, large.payload.samples)
    sender.close()
    with pytest.raises(ConnectionError):
        receiver.get()
    receiver.close()
    listener.close()


def test_socket_sender_survives_its_receiver_and_reaches_the_next_one() -> None:
    address = make_address("edge")
    listener, sender = listen(address), SocketSender(address)
    sender.put([frame_chunk("a", 0)])
    first = SocketReceiver(listener)
    first.get()
    first.close()
    sender.put([frame_chunk("b", 0)])  # no message of a new request may be lost
    sender.put([frame_chunk("b", 1)])
    second = SocketReceiver(listener)
    for index in (0, 1):
        (received,) = second.get()
        assert_same(received, frame_chunk("b", index))
    second.close()
    sender.close()
    listener.close()


GARBAGE = (
    b"no message at all, and long enough",
    struct.pack("!4sI", b"CnTa", 0xFFFFFFFF),
)


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_what_is_no_message_breaks_a_channel_at_once(garbage: bytes) -> None:
    ours, theirs = socket.socketpair()
    blocking, channel = BlockingChannel(theirs), await AsyncChannel.open(ours)
    blocking._socket.sendall(garbage)
    with pytest.raises(BrokenChannel, match="not a message"):
        await channel.receive()
    channel._writer.write(garbage)
    with pytest.raises(BrokenChannel, match="not a message"):
        await asyncio.to_thread(blocking.receive)
    blocking.close()
    await channel.close()


def test_an_edge_has_no_file_and_rejects_other_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = make_address("edge")
    listener, sender = listen(address), SocketSender(address)
    assert address[0] == "\0"
    sender.put([frame_chunk("a", 0)])
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(ConnectionError, match="another user"):
        SocketReceiver(listener)
    sender.close()
    listener.close()


async def test_both_ends_of_a_channel_understand_each_other() -> None:
    ours, theirs = socket.socketpair()
    blocking, channel = BlockingChannel(theirs), await AsyncChannel.open(ours)
    await channel.send(b"one", bytearray(b" message"), memoryview(b""))
    assert await asyncio.to_thread(blocking.receive) == b"one message"
    blocking.send(b"its answer")
    assert await channel.receive() == b"its answer"
    blocking.close()
    with pytest.raises(ConnectionError):
        await channel.receive()
    await channel.close()


def test_chunks_of_any_mixture_are_packed_without_loss() -> None:
    word, milestone = WordTiming(0, 0.1, 0.2), Milestone("talker", 1.0)
    wide, long = np.ones((2, 16), np.int32), np.arange(6, dtype=np.float32)[:, None]
    chunks = [
        frame_chunk("a", 0),
        frame_chunk("b", 3, final=True),
        codes_chunk("c", 1, wide, False, context_frames=1),
        codes_chunk("d", 2, wide[:0], True),
        pcm_chunk("a", 0, long, False, (word,), (milestone,)),
        pcm_chunk("b", 1, long[:0], True),
        pcm_chunk("c", 0, np.ones((3, 2), np.float32), False),
        frame_chunk("a", 1),
        Chunk("a", "rows", 0, Rows(np.ones((2, 3), np.float32)), False),
        Chunk("b", "rows", 0, Rows(np.zeros((0, 3), np.float32)), True, (milestone,)),
    ]
    encoded = encode_message(Output(tuple(chunks)))  # type: ignore[arg-type]
    received = decode_message(bytearray(b"".join(encoded)))
    assert isinstance(received, Output)
    for one, other in zip(received.chunks, chunks, strict=True):
        assert replace(one, payload=other.payload) == other  # type: ignore[attr-defined]
        (array, *rest), (expected, *more) = map(astuple, (one.payload, other.payload))
        assert (type(one.payload), array.dtype, rest) == (type(other.payload), expected.dtype, more)
        np.testing.assert_array_equal(array, expected)


def test_hold_passes_a_request_on_as_one_chunk_when_it_is_complete() -> None:
    hold = ChunkAccumulator()
    assert hold.pass_on([frame_chunk("a", 0), frame_chunk("b", 0)]) == []
    (whole,) = hold.pass_on([frame_chunk("a", 1, final=True)])
    expected = np.concatenate(
        [frame_chunk("a", 0).payload.values, frame_chunk("a", 1).payload.values]
    )
    words = frame_chunk("a", 0).payload.words + frame_chunk("a", 1).payload.words
    assert_same(whole, codes_chunk("a", 0, expected, True, words))
    assert len(hold) == 1
    hold.drop("b")
    hold.drop("never seen")
    assert len(hold) == 0


def test_chunks_of_different_requests_are_never_joined() -> None:
    with pytest.raises(ValueError, match="different requests"):
        concatenate([frame_chunk("a", 0), frame_chunk("b", 0)])
