"""Chunks as they travel on edges: whole, checked, and with times of their receiver's clock."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Any

import numpy as np
import pytest

from alike import same
from cantata.contract.data.chunks import (
    Chunk,
    Codes,
    Image,
    Milestone,
    Payload,
    Pcm,
    Progress,
    Rows,
    WordTiming,
    to_array,
)
from cantata.contract.data.packing import pack, unpack
from cantata.contract.data.transcripts import (
    TokenLogprob,
    TranscribedWord,
    Transcript,
    TranscriptUpdate,
)
from cantata.ipc.chunk_message import ChunkMessage, find_problem
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.serialization import decode, encode
from cantata.ipc.wire import BrokenChannel

WORDS = (WordTiming(0, 0.0, 0.5), WordTiming(1, 0.5, 0.75))
SAID = Transcript(
    "Grüße, 世界.",
    "de",
    (TranscribedWord("Grüße,", 0.25, 0.5, 0.75, (1, 2)), TranscribedWord("世界.", 0.5, 1.0, 1.0)),
    (TokenLogprob("Gr\ufffd", (71, 114, 195), -0.25), TokenLogprob("", (), 0.0)),
    -0.5,
    0.0,
    0.2,
    1.5,
)
SILENCE = Transcript("", no_speech_prob=1.0)
CHUNKS: list[Chunk[Payload]] = [
    Chunk("a", "codes", 0, Codes(np.ones((2, 16), np.int32), 1, WORDS), final=False),
    Chunk("b", "codes", 7, Codes(np.zeros((0, 16), np.int32)), final=True),
    Chunk("c", "codes", 2, Codes(np.full((1, 4), 9, np.int32)), final=False),
    Chunk("d", "codes", 3, Codes(np.ones((2, 4), np.int32), logprobs=(-0.5, 0.0)), final=False),
    Chunk("a", "rows", 0, Rows(np.ones((3, 5), np.float32), 2, WORDS), final=False),
    Chunk("a", "pcm", 1, Pcm(np.full((4, 2), 0.1, np.float32), WORDS), final=True),
    Chunk("a", "image", 0, Image(np.ones((2, 3, 3), np.uint8)), final=True),
    Chunk("a", "progress", 0, Progress(np.ones((2, 3, 3), np.uint8), 0, 8), final=False),
    Chunk("b", "progress", 1, Progress(np.ones((0, 3, 3), np.uint8), 3, 8), final=False),
    Chunk("a", "transcript", 0, TranscriptUpdate(np.arange(3, dtype=np.int32), SAID), final=False),
    Chunk("b", "transcript", 4, TranscriptUpdate(np.zeros(0, np.int32), SILENCE), final=True),
    Chunk("c", "transcript", 1, TranscriptUpdate(np.full(2, 9, np.int32), SAID), final=True),
]


def sent_here(encoded: EncodedChunks) -> EncodedChunks:
    """As another process of this machine has it."""
    return EncodedChunks.from_local(bytearray(b"".join(encoded.parts)))


def sent_over_link(encoded: EncodedChunks) -> EncodedChunks:
    """As another machine has it."""
    return EncodedChunks.from_link(bytearray(b"".join(encoded.parts_for_link)))


@pytest.mark.parametrize("journey", [(sent_here,), (sent_here, sent_over_link, sent_here)])
def test_chunks_arrive_as_they_were(journey: tuple[Any, ...]) -> None:
    encoded = EncodedChunks.of(CHUNKS)
    for sent in journey:
        encoded = sent(encoded)
    arrived = encoded.chunks()
    assert len(arrived) == len(CHUNKS)
    assert all(map(same, CHUNKS, arrived))


TRANSCRIPTS = [one for one in CHUNKS if isinstance(one.payload, TranscriptUpdate)]


@pytest.mark.parametrize("chunks", [CHUNKS, *([one] for one in TRANSCRIPTS), TRANSCRIPTS[::-1]])
def test_what_was_packed_is_unpacked(chunks: list[Chunk[Payload]]) -> None:
    unpacked = unpack(pack(chunks))
    assert len(unpacked) == len(chunks)
    assert all(map(same, chunks, unpacked))


@pytest.mark.parametrize("chunks", [*([one] for one in TRANSCRIPTS), TRANSCRIPTS])
def test_transcripts_arrive_from_another_machine(chunks: list[Chunk[Payload]]) -> None:
    """Alone, and several in a message of one array."""
    encoded = sent_over_link(EncodedChunks.of(chunks))
    arrived = encoded.chunks()
    assert len(decode(encoded.content, ChunkMessage).groups) == 1
    assert len(arrived) == len(chunks)
    assert all(map(same, chunks, arrived))


def test_a_model_may_write_numpys_numbers_into_its_transcript() -> None:
    said: Any = np.float32(0.5), np.float64(1.5), np.int64(7)
    word = TranscribedWord("a", said[0], said[1], said[0], (said[2],))
    update = TranscriptUpdate(np.zeros(1, np.int64), Transcript("a", words=(word,)))
    [arrived] = sent_here(EncodedChunks.of([Chunk("a", "transcript", 0, update, True)])).chunks()
    assert isinstance(arrived.payload, TranscriptUpdate)
    plain = Transcript("a", words=(TranscribedWord("a", 0.5, 1.5, 0.5, (7,)),))
    assert same(arrived.payload, TranscriptUpdate(np.zeros(1, np.int32), plain))


def test_a_chunk_without_its_transcript_is_refused() -> None:
    [group] = decode(EncodedChunks.of(TRANSCRIPTS).content, ChunkMessage).groups
    metadata = {number: one for number, one in group.metadata.items() if number != 1}
    altered = ChunkMessage((dataclasses.replace(group, metadata=metadata),))
    with pytest.raises(BrokenChannel, match="no transcript"):
        EncodedChunks(b"".join(encode(altered))).chunks()


def test_a_stage_may_write_into_what_arrives() -> None:
    [arrived] = sent_here(EncodedChunks.of(CHUNKS[:1])).chunks()
    assert isinstance(arrived.payload, Codes)
    assert arrived.payload.values.flags.writeable


def test_a_relay_reads_whose_chunks_these_are() -> None:
    heads = sent_here(EncodedChunks.of(CHUNKS)).heads()
    assert list(heads.request_ids) == [one.request_id for one in CHUNKS]
    assert list(heads.last) == [
        ("b", "codes"),
        ("a", "pcm"),
        ("a", "image"),
        ("b", "transcript"),
        ("c", "transcript"),
    ]


def test_milestones_keep_their_time_on_one_machine() -> None:
    milestones = (Milestone("talker", time.monotonic() - 5.0),)
    chunk = dataclasses.replace(CHUNKS[0], milestones=milestones)
    [arrived] = sent_here(sent_here(EncodedChunks.of([chunk]))).chunks()
    assert arrived.milestones == milestones


def test_milestones_keep_their_age_between_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three machines, whose clocks differ; the second one only relays."""
    clocks, here = {"first": 100.0, "second": 5_000.0, "third": 3.0}, ["first"]
    monkeypatch.setattr(time, "monotonic", lambda: clocks[here[0]])
    chunk = dataclasses.replace(CHUNKS[0], milestones=(Milestone("talker", 95.0),))
    encoded = EncodedChunks.of([chunk])
    for machine in ("second", "third"):
        encoded = sent_here(encoded)
        message = bytearray(b"".join(encoded.parts_for_link))
        here[0] = machine
        encoded = EncodedChunks.from_link(message)
        clocks = {name: seconds + 0.25 for name, seconds in clocks.items()}  # it waits there
    [arrived] = sent_here(encoded).chunks()
    assert clocks["third"] - arrived.milestones[0].at_s == 5.5


@pytest.mark.parametrize(
    "change",
    [
        {"payload": "Rows"},
        {"payload": "Voice"},
        {"lengths": (1,)},
        {"lengths": (-1, 3)},
        {"finals": (True,)},
        {"indexes": ()},
        {"array": np.ones((2, 16), np.int64)},
        {"array": np.ones((2, 16, 1), np.int32)},
        {"metadata": {5: {}}},
    ],
)
def test_chunks_that_contradict_themselves_are_refused(change: dict[str, Any]) -> None:
    [group] = decode(EncodedChunks.of(CHUNKS[:2]).content, ChunkMessage).groups
    altered = ChunkMessage((dataclasses.replace(group, **change),))
    with pytest.raises(BrokenChannel, match=r"is no|are no"):
        EncodedChunks(b"".join(encode(altered))).chunks()


@pytest.mark.parametrize("message", [b"", b"seven b", bytes.fromhex("7ff8000000000000") + b"rest"])
def test_a_message_without_a_time_is_refused(message: bytes) -> None:
    for receive in (EncodedChunks.from_local, EncodedChunks.from_link):
        with pytest.raises(BrokenChannel, match="what arrived are no chunks"):
            receive(message)


def test_any_change_of_a_message_is_refused_or_still_chunks() -> None:
    """Nothing but `BrokenChannel` comes of what was altered on its way."""
    chance, content = random.Random(0), bytes(EncodedChunks.of(CHUNKS).content)
    refused = {"chunks": 0, "heads": 0}
    for _ in range(2000):
        altered = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            altered[chance.randrange(len(altered))] = chance.randrange(256)
        encoded = EncodedChunks(altered)
        for name, read in (("chunks", encoded.chunks), ("heads", encoded.heads)):
            try:
                read()
            except BrokenChannel:
                refused[name] += 1
    assert refused["chunks"] > refused["heads"] > 200


@pytest.mark.parametrize(
    "payload", [Codes(np.ones((2, 16), np.int64)), Rows(np.ones((2, 16), np.float64))]
)
def test_numbers_of_another_size_are_sent_as_the_contract_has_them(payload: Payload) -> None:
    assert find_problem(payload) is None
    [arrived] = sent_here(EncodedChunks.of([Chunk("a", "port", 0, payload, final=True)])).chunks()
    assert to_array(arrived.payload).dtype in (np.int32, np.float32)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (Codes(np.ones((2, 16), np.float32)), "float32, shape (2, 16), instead of int32, 2 axes"),
        (Rows(np.ones(16, np.float32)), "float32, shape (16,), instead of float32, 2 axes"),
        (Image(np.ones((2, 3), np.uint8)), "uint8, shape (2, 3), instead of uint8, 3 axes"),
    ],
)
def test_what_cannot_be_sent_is_named(payload: Payload, problem: str) -> None:
    assert find_problem(payload) == f"an array of {problem}"


def test_numpys_numbers_are_sent_as_plain_ones() -> None:
    """A model's code may take them out of arrays."""
    word: Any = WordTiming(np.int64(3), np.float32(0.5), np.float64(0.75))  # type: ignore[arg-type]
    codes = Codes(np.ones((1, 2), np.int32), np.int32(1), (word,))  # type: ignore[arg-type]
    chunk = Chunk("a", "codes", np.int64(0), codes, final=np.bool_(True))  # type: ignore[arg-type]
    [arrived] = sent_here(EncodedChunks.of([chunk])).chunks()
    expected = Codes(codes.values, 1, (WordTiming(3, 0.5, 0.75),))
    assert same(arrived, Chunk("a", "codes", 0, expected, final=True))
