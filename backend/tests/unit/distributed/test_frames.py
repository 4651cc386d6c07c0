"""What a link's bytes mean: frames, bodies, the hello; and that anything else is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cantata.contract.data import errors
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.faults import to_error, to_fault
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata.contract.process.messages import Histogram, ReuseReport, StepReport
from cantata.contract.service import SpokenWord, StageReport
from cantata.distributed.key import LinkKey
from cantata.distributed.link.errors import ProtocolError, Refused
from cantata.distributed.link.frames import Frame, FrameParser, pack_header
from cantata.distributed.link.hello import Hello, LinkSide
from cantata.distributed.messages import Opened, Reports, SoundMessage, SpeakRequest
from cantata.distributed.model_advertisement import Advertisement, SpeakingModel
from cantata.distributed.serialization import decode, encode

KEY = LinkKey(b"a key of thirty-two bytes, about")

frames = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=300)), max_size=8
)


@given(frames, st.lists(st.integers(1, 40), min_size=1, max_size=50))
def test_frames_arrive_however_the_bytes_are_cut(
    sent: list[tuple[int, int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(pack_header(kind, stream, len(body)) + body for kind, stream, body in sent)
    parser, arrived, place = FrameParser(), list[Frame](), 0
    for cut in cuts:
        arrived += parser.feed(data[place : place + cut])
        place += cut
    arrived += parser.feed(data[place:])
    assert [(frame.kind, frame.stream, bytes(frame.body)) for frame in arrived] == sent


def test_a_body_beyond_the_limit_is_refused_before_it_arrives() -> None:
    parser = FrameParser(100)
    assert len(parser.feed(pack_header(20, 1, 100) + bytes(100))) == 1
    with pytest.raises(ProtocolError, match="101 bytes"):
        parser.feed(pack_header(20, 1, 101))


def build_body(message: object) -> bytearray:
    return bytearray(b"".join(bytes(part) for part in encode(message)))


REFERENCE = ReferenceAudio(
    np.arange(12, dtype=np.float32).reshape(6, 2)[::2], 16_000, "what it says"
)


def test_messages_with_arrays_survive() -> None:
    request = SpeechRequest(
        "Grüße, 世界.", "clara", speed=1.5, seed=7, reference=REFERENCE, options={"mood": ["x", 1]}
    )
    message = SpeakRequest("work", "model", request, batch=True)
    arrived = decode(build_body(message), SpeakRequest)
    reference = arrived.request.reference
    assert reference is not None
    np.testing.assert_array_equal(reference.samples, REFERENCE.samples)
    assert reference.samples.flags.writeable
    assert arrived.request.options == {"mood": ["x", 1]}
    assert (arrived.request.text, arrived.request.seed, arrived.batch) == ("Grüße, 世界.", 7, True)


def test_what_a_model_can_do_survives() -> None:
    can = Capabilities(
        instructions=True,
        languages=("en", "de"),
        paces=(0.5, 2.0),
        options={"pair": {"prefixItems": [{"type": "number"}, {}], "default": [0.5, None]}},
    )
    card = SpeakingModel("tiny", "identity", (), 24_000, 2, 100, False, can)
    announced = Advertisement("tiny", (card,), (), ())
    assert decode(build_body(announced), Advertisement) == announced


def test_every_part_of_a_report_survives() -> None:
    histogram = Histogram((0.1, 1.0), (3, 2, 1), 4.5)
    report = StageReport(
        "model", "stage", 12, True, 1.5, 1 << 40, {"slots": 3}, StepReport(histogram, histogram),
        7, ReuseReport(1, 2, 3, 4), 5, "SIGKILL", "memory", "10.0.0.1:8100",
    )  # fmt: skip
    assert decode(build_body(Reports((report,))), Reports).stages == (report,)


@pytest.mark.parametrize("samples", [0, 1, 7, 1920])
def test_sound_survives_bit_for_bit(samples: int) -> None:
    sound = np.random.default_rng(1).standard_normal((samples, 2)).astype(np.float32)
    words = (SpokenWord(0, 3, 0.1, 0.25),)
    arrived = decode(build_body(SoundMessage(sound, words)), SoundMessage)
    assert arrived.samples.tobytes() == sound.tobytes()
    assert arrived.samples.shape == sound.shape
    assert arrived.words == words


@dataclass(frozen=True)
class Whole:
    values: NDArray[np.int32]


def forged(dtype: Any, shape: Any, place: Any, tail: int = 64) -> bytearray:
    """A `Whole` with this description of its array, and so many bytes after the head."""
    head = msgspec.msgpack.encode({"values": (dtype, shape, place)})
    padding = bytes(-(4 + len(head)) % 8)
    return bytearray(struct.pack("!I", len(head)) + head + padding + bytes(tail))


@pytest.mark.parametrize(
    "body",
    [
        forged("<f4", (4,), 0),
        forged("|O", (4,), 0),
        forged("<i4", (17,), 0),
        forged("<i4", (2**40, 2**40), 0),
        forged("<i4", (-1,), 0),
        forged("<i4", (4,), -8),
        forged("<i4", (4,), 64),
        forged("<i4", (1, 1, 1, 1, 1), 0),
        forged("<i4", "four", 0),
        bytearray(),
        bytearray(b"\xff\xff\xff\xff"),
        build_body(Opened("id", ())),
    ],
)
def test_an_array_that_is_not_there_is_garbage(body: bytearray) -> None:
    assert decode(forged("<i4", (4, 4), 0), Whole).values.shape == (4, 4)
    with pytest.raises(ProtocolError):
        decode(body, Whole)


def test_random_changes_of_a_message_are_garbage_or_another_message() -> None:
    draw, whole = random.Random(3), build_body(SpeakRequest("w", "m", SpeechRequest("a", "b")))
    refused = 0
    for _ in range(2_000):
        body = bytearray(whole)
        body[draw.randrange(len(body))] = draw.randrange(256)
        try:
            decode(body, SpeakRequest)
        except ProtocolError:
            refused += 1
    assert refused > 500


def test_what_cannot_be_sent_is_an_error_here() -> None:
    with pytest.raises(TypeError, match="object"):
        encode(SpeechRequest("a", "b", options={"thing": object()}))


def test_the_hello_proves_the_key_to_both() -> None:
    near, far = Hello(LinkSide.CONNECTED, KEY), Hello(LinkSide.ACCEPTED, KEY)
    near_proof, far_proof = near.prove(far.hello), far.prove(near.hello)
    far.check(near_proof)
    near.check(far_proof)
    assert KEY.secret not in near.hello + near_proof + far_proof
    assert "thirty" not in repr(KEY)
    for proof, end in ((near_proof, near), (far_proof, far), (bytes(32), far), (b"", far)):
        with pytest.raises(Refused):
            end.check(proof)


def test_another_key_an_echo_and_an_old_proof_are_refused() -> None:
    near, far = Hello(LinkSide.CONNECTED, KEY), Hello(LinkSide.ACCEPTED, LinkKey(bytes(32)))
    far.prove(near.hello)
    with pytest.raises(Refused, match="another key"):
        far.check(near.prove(far.hello))
    with pytest.raises(Refused, match="challenge back"):
        near.prove(near.hello)
    once, again = Hello(LinkSide.ACCEPTED, KEY), Hello(LinkSide.ACCEPTED, KEY)
    proof = near.prove(once.hello)
    once.prove(near.hello)
    once.check(proof)
    again.prove(near.hello)
    with pytest.raises(Refused):
        again.check(proof)


@pytest.mark.parametrize("theirs", [b"", b"GET / HTTP/1.1\r\n", bytes(44), bytes(500)])
def test_whoever_speaks_another_protocol_is_refused(theirs: bytes) -> None:
    with pytest.raises(Refused, match="protocol"):
        Hello(LinkSide.ACCEPTED, KEY).prove(theirs)


def test_another_version_is_named() -> None:
    hello = Hello(LinkSide.CONNECTED, KEY).hello
    newer = hello[:8] + struct.pack("!I", 999) + hello[12:]
    with pytest.raises(Refused, match="version 999"):
        Hello(LinkSide.ACCEPTED, KEY).prove(newer)


EVERY_ERROR = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.CantataError)
]


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_every_error_of_the_tree_crosses(kind: type[errors.CantataError]) -> None:
    error = kind("what happened")
    arrived = to_error(to_fault(error))
    assert type(arrived) is kind
    assert arrived.message == "what happened"


def test_an_errors_details_cross() -> None:
    invalid = to_error(to_fault(errors.VoiceNotFound("no voice", "voice")))
    assert isinstance(invalid, errors.VoiceNotFound)
    assert invalid.param == "voice"
    full = to_error(to_fault(errors.Overloaded("full", 7.5)))
    assert isinstance(full, errors.Overloaded)
    assert full.retry_after_s == 7.5
