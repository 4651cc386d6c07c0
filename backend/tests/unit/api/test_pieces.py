"""The small parts: samples, headers, sentences, the outbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.api.speech.messages import AudioDone, AudioStart, AudioTimestamps, InputSpoken
from cantata.api.speech.outbox import AudioFrame, Outbox, OutboxFull
from cantata.audio.pcm import build_streaming_header, encode_s16le, to_s16
from cantata.text.sentences import iterate_line_starts, split_clauses, split_sentences


def test_samples_are_rounded_and_clipped() -> None:
    given_samples = [0, 1, -1, 1.0001, -7, 0.6 / 32767, -0.6 / 32767, 0.4 / 32767]
    expected = [0, 32767, -32767, 32767, -32767, 1, -1, 0]
    assert to_s16(np.array(given_samples, np.float32)).tolist() == expected


def test_samples_that_are_no_numbers_are_silence_or_full_scale() -> None:
    samples = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert to_s16(samples).tolist() == [0, 32767, -32767]


@pytest.mark.parametrize("channels", [1, 2])
def test_bytes_are_little_endian_and_interleaved(channels: int) -> None:
    rng = np.random.default_rng(0)
    samples = rng.uniform(-1, 1, (100, channels)).astype(np.float32)
    decoded = np.frombuffer(encode_s16le(samples), "<i2").reshape(samples.shape) / 32767
    np.testing.assert_allclose(decoded, samples, atol=2e-5)


def test_header_says_that_the_length_is_unknown() -> None:
    header = build_streaming_header(48000, 2)
    assert len(header) == 44
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"
    assert int.from_bytes(header[28:32], "little") == 48000 * 4


@pytest.mark.parametrize(
    ("text", "sentences", "rest"),
    [
        ("Hello", [], "Hello"),
        ("Hello.", [], "Hello."),
        ("Hello. ", ["Hello."], ""),
        ("One. Two! Three? Fo", ["One.", "Two!", "Three?"], "Fo"),
        ("It is 3.14 exactly. Y", ["It is 3.14 exactly."], "Y"),
        ("Dr. Who met Mr. J. Smith. He", ["Dr. Who met Mr. J. Smith."], "He"),
        ("So did I. You", ["So did I."], "You"),
        ('He said "no." Then', ['He said "no."'], "Then"),
        ("A heading\n\nText", ["A heading"], "Text"),
        ("one line\nthe next", [], "one line\nthe next"),
        ("... well. Yes", ["... well."], "Yes"),
        ("\u4f60\u597d\u3002\u518d", ["\u4f60\u597d\u3002"], "\u518d"),
        ("Hi. [pause 1. 5s] Yo. ", ["Hi.", "[pause 1. 5s] Yo."], ""),
        ("So [pause 1.\n\n", [], "So [pause 1.\n\n"),
        ("Well. [pause 1s]. Then. N", ["Well.", "[pause 1s]. Then."], "N"),
        ("Well. [pause 1s] ", ["Well."], "[pause 1s] "),
        ("**Note well.** It", ["**Note well.**"], "It"),
        ('Go. <break time="1. 5s"/> On. N', ["Go.", '<break time="1. 5s"/> On.'], "N"),
        ('So <a title="Hm. Well. ', [], 'So <a title="Hm. Well. '),
        ("[One. Two](http://a.b) is. N", ["[One. Two](http://a.b) is."], "N"),
        ("Yes. </speak>", ["Yes."], "</speak>"),
        ("It costs $5. Then $6. N", ["It costs $5.", "Then $6."], "N"),
        ("a <b. It is", [], "a <b. It is"),
    ],
)
def test_sentences(text: str, sentences: list[str], rest: str) -> None:
    assert split(text) == (sentences, rest)


def test_pieces_know_whether_they_begin_a_line() -> None:
    text = "One. > Two.\n> Three. \n # Fo"
    spans, rest = split_sentences(text)
    assert [text[span.start : span.end] for span in spans] == ["One.", "> Two.", "> Three."]
    assert list(iterate_line_starts(text, spans, rest, line_start=True)) == [
        True,
        False,
        True,
        True,
    ]
    assert list(iterate_line_starts(text, spans, rest, line_start=False)) == [
        False,
        False,
        True,
        True,
    ]


def split(text: str) -> tuple[list[str], str]:
    spans, rest = split_sentences(text)
    return [text[span.start : span.end] for span in spans], text[rest:]


def test_some_abbreviations_end_no_sentence_where_a_number_follows() -> None:
    assert split("See no. 7. And fig. 2 of p. 3. ") == (["See no. 7.", "And fig. 2 of p. 3."], "")
    assert split("Oh no. Then go. ") == (["Oh no.", "Then go."], "")
    assert split("Oh no. ") == ([], "Oh no. "), "a number may come"


@given(st.lists(st.text("abno1 .!?\n\"'", max_size=8), max_size=12))
def test_sentences_lose_nothing_however_text_arrives(pieces: list[str]) -> None:
    spoken: list[str] = []
    rest = ""
    for piece in pieces:
        sentences, rest = split(rest + piece)
        spoken += sentences
    assert "".join(" ".join([*spoken, rest]).split()) == "".join("".join(pieces).split())


def cost_s(function: Callable[[str], object], text: str) -> float:
    """CPU time of one call."""
    began = time.thread_time()
    function(text)
    return time.thread_time() - began


def grows_with_its_length(function: Callable[[str], object], text: str) -> bool:
    """Four times the text takes four times as long, not sixteen: the best of three of each."""
    quarter = text[: len(text) // 4]
    limit_s = 10 * min(cost_s(function, quarter) for _ in range(3)) + 0.05
    return any(cost_s(function, text) < limit_s for _ in range(3))


@pytest.mark.parametrize(
    "text",
    [
        "!" * 200_000,
        "a" * 200_000 + " b! ",
        "\n" * 200_000,
        ". " * 100_000,
        "[" * 200_000,
        "[ pause" * 30_000,
    ],
)
def test_long_text_of_any_kind_is_split_at_once(text: str) -> None:
    assert grows_with_its_length(split_sentences, text)


@pytest.mark.parametrize(
    ("text", "clauses", "rest"),
    [
        ("When the kettle boils,", [], "When the kettle boils,"),
        ("When the kettle boils, w", ["When the kettle boils,"], "w"),
        ("Well, when it boils, we ", ["Well, when it boils,"], "we "),
        ("It costs 10,000 pounds at 10:30 o'", [], "It costs 10,000 pounds at 10:30 o'"),
        ("She left the house early, too. N", ["She left the house early, too."], "N"),
        ("She left very early, ... And", ["She left very early, ..."], "And"),
        (
            "She left very early \u2013 he followed her later. A",
            ["She left very early \u2013", "he followed her later."],
            "A",
        ),
        (
            "He counted his steps [pause 1, s] slowly, a",
            ["He counted his steps [pause 1, s] slowly,"],
            "a",
        ),
    ],
)
def test_clauses(text: str, clauses: list[str], rest: str) -> None:
    spans, start = split_clauses(text)
    assert [text[span.start : span.end] for span in spans] == clauses
    assert text[start:] == rest


@pytest.mark.parametrize(
    "text", [", " * 100_000, "a, " * 40_000, "[pause ,, " * 20_000, "a. " * 20_000]
)
def test_long_text_of_any_kind_is_cut_into_clauses_at_once(text: str) -> None:
    assert grows_with_its_length(split_clauses, text)


def frame(samples: int, utterance_id: str = "u") -> AudioFrame:
    return AudioFrame(utterance_id, np.zeros(samples, np.float32))


def done(samples: int, utterance_id: str = "u") -> AudioDone:
    return AudioDone(
        utterance_id=utterance_id, samples=samples, duration_s=samples / 10, ttfp_s=0.1, rtf=0.1
    )


async def test_outbox_holds_back_audio() -> None:
    outbox = Outbox(max_bytes=100)
    long, short = frame(50), frame(1)
    await outbox.put(long)
    waiting = asyncio.create_task(outbox.put(short))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await outbox.get() is long
    await waiting
    assert await outbox.get() is short


async def test_the_outbox_is_bounded() -> None:
    outbox = Outbox(max_bytes=100)
    for _ in range(128):
        outbox.post(InputSpoken())
    with pytest.raises(OutboxFull):
        outbox.post(InputSpoken())


async def test_outbox_drops_audio_and_corrects_what_is_behind_it() -> None:
    outbox = Outbox(max_bytes=1000)
    start = AudioStart(utterance_id="b", sample_rate=10, channels=1)
    words = AudioTimestamps(utterance_id="b", words=[])
    for item in (frame(5, "a"), done(20, "a"), InputSpoken(), start, words, frame(10, "b")):
        await outbox.put(item)
    assert outbox.drop_audio() == {"a": 5, "b": 10}
    outbox.close()
    corrected = await outbox.get()
    assert isinstance(corrected, AudioDone)
    assert (corrected.samples, corrected.duration_s, corrected.cancelled) == (15, 1.5, True)
    assert await outbox.get() == start
    assert await outbox.get() is None


async def test_a_discarded_outbox_never_blocks() -> None:
    outbox = Outbox(max_bytes=10)
    await outbox.put(frame(50))
    waiting = asyncio.create_task(outbox.put(frame(50)))
    await asyncio.sleep(0)
    outbox.discard()
    await waiting
    for _ in range(500):
        outbox.post(InputSpoken())
    assert await outbox.get() is None
