"""Sound comes at once while its listener needs it, and in longer pieces later; never another."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from fake_cluster import FakeCluster, collect_chunks, collect_sound, fake_cluster, undisturbed
from fake_service import eventually

from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk
from cantata.distributed.link.stream import WINDOW_BYTES, LinkStream
from cantata.distributed.messages import SoundMessage
from cantata.distributed.replica.messaging import PIECE_BYTES, SoundBatcher
from cantata.distributed.serialization import decode
from cantata.ipc.wire import Buffer

RATE = 24_000
CHUNK = 1_920
CHUNK_S = CHUNK / RATE
TEXT = "One two three four five six seven eight nine ten eleven twelve thirteen."


class Carrier:
    """The link of a stream; keeps what is sent."""

    has_room = True

    def __init__(self) -> None:
        self.pieces: list[SoundMessage] = []

    def put(self, kind: int, stream: int, parts: tuple[Buffer, ...] = ()) -> None:
        self.pieces.append(decode(bytearray().join(parts), SoundMessage))

    def forget(self, stream: int) -> None: ...

    def close(self, reason: str) -> None: ...

    @property
    def samples(self) -> int:
        return sum(len(piece.samples) for piece in self.pieces)


def chunk(samples: int = CHUNK) -> SpeechChunk:
    return SpeechChunk(np.zeros((samples, 1), np.float32))


async def test_pieces_grow_with_what_is_left_to_play() -> None:
    async with fake_cluster(1, chunk_samples=CHUNK) as cluster:
        pieces = await collect_chunks(cluster, TEXT)
        assert collect_sound(pieces) == undisturbed(cluster, TEXT)
    lengths = [len(piece.samples) // CHUNK for piece in pieces]
    assert lengths[:4] == [1, 1, 1, 1], "a listener who has little gets each chunk at once"
    assert len(pieces) < len(TEXT) / 2
    assert max(piece.samples.nbytes for piece in pieces) <= PIECE_BYTES


async def test_each_word_comes_with_its_own_first_samples() -> None:
    async with fake_cluster(1, chunk_samples=CHUNK) as cluster:
        pieces = await collect_chunks(cluster, TEXT)
    spoken, began_s = list[str](), 0.0
    for piece in pieces:
        ends_s = began_s + len(piece.samples) / RATE
        assert all(began_s <= word.start_s < ends_s for word in piece.words)
        spoken += [TEXT[word.text_start : word.text_end] for word in piece.words]
        began_s = ends_s
    assert spoken == TEXT.rstrip(".").split()


async def test_what_was_made_before_a_failure_is_heard() -> None:
    made, pieces = 41, list[SpeechChunk]()

    async def listen(cluster: FakeCluster) -> None:
        async with cluster.edge.get_model("solo").run(SpeechRequest(TEXT, "clara")) as utterance:
            async for piece in utterance:
                pieces.append(piece)

    error = RequestFailed("the decoder could not")
    async with fake_cluster(1, chunk_samples=CHUNK, fail_after=made, error=error) as cluster:
        with pytest.raises(RequestFailed):
            await listen(cluster)
    assert sum(len(piece.samples) for piece in pieces) == made * CHUNK


async def test_what_is_held_is_sent_before_it_is_needed() -> None:
    carrier, due = Carrier(), list[float]()
    loop = asyncio.get_running_loop()
    batcher = SoundBatcher(LinkStream(carrier, 1), RATE, joins=True)
    began_s, held = loop.time(), 0
    for made in range(1, 12):
        await batcher.send(chunk())
        held = made * CHUNK - carrier.samples
    assert held, "something waits for more, which does not come"
    assert batcher._timer is not None
    due.append(batcher._timer.when())
    assert due[0] < began_s + carrier.samples / RATE, "the listener still has something to play"
    await eventually(lambda: carrier.samples == 11 * CHUNK)


async def test_nothing_is_sent_beyond_the_credit() -> None:
    carrier = Carrier()
    stream = LinkStream(carrier, 1)
    batcher = SoundBatcher(stream, RATE, joins=True)
    await batcher.send(chunk(WINDOW_BYTES // 4))  # which takes all credit
    await batcher.send(chunk())
    assert len(carrier.pieces) == 1
    assert not stream.can_send
    batcher._hurry()
    assert len(carrier.pieces) == 1, "it waits for the edge, which has much to take"
    batcher.close()


async def test_who_hears_a_repetition_waits_for_nothing() -> None:
    carrier = Carrier()
    batcher = SoundBatcher(LinkStream(carrier, 1), RATE, joins=False)
    for _ in range(20):
        await batcher.send(chunk())
    assert [len(piece.samples) for piece in carrier.pieces] == [CHUNK] * 20


async def test_after_a_loss_each_chunk_comes_at_once() -> None:
    async with fake_cluster(2, chunk_samples=CHUNK, interval_s=0.001) as cluster:
        model = cluster.edge.get_model("solo")
        pieces = list[SpeechChunk]()
        async with model.run(SpeechRequest(TEXT, "clara")) as utterance:
            async for piece in utterance:
                pieces.append(piece)
                if len(pieces) == 8:
                    lost = len(pieces)
                    await cluster.speaking().host.stop()
        assert collect_sound(pieces) == undisturbed(cluster, TEXT)
    assert max(len(piece.samples) for piece in pieces[:lost]) > CHUNK
    resumed = [len(piece.samples) for piece in pieces[lost:]]
    assert resumed[-10:] == [CHUNK] * 10
