"""From a text to pieces and silences, and from a piece's timings to the caller's words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cantata.audio.playback import Playback
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import WordTiming
from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.data.request import (
    LexiconEntry,
    PipelineRequest,
    SpeechRequest,
    TextSpan,
    Voice,
    check_text_length,
)
from cantata.contract.service import SpokenWord
from cantata.pipeline.segments import WORDLESS_S, TextSegment, locate_words, plan_segments
from cantata.text import Passage, TextPause
from cantata.text.ssml import EMPHASES


class SentenceBuilder:
    """One piece for each sentence; `#` cannot be spoken."""

    voices = (Voice("v", "V"),)
    capabilities = Capabilities(paces=(0.8, 1.25))
    warm_up = SpeechRequest("a", "v")

    silence_s = 0.0
    """Between sentences."""

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        if "#" in request.text:
            raise InvalidRequest("no word for #", "input")
        sentences = [
            tuple(
                TextSpan(sentence.start() + word.start(), sentence.start() + word.end())
                for word in re.finditer(r"\w+", sentence[0])
            )
            for sentence in re.finditer(r"[^.]*\w[^.]*", request.text)
        ]
        if not sentences:
            raise InvalidRequest("no words", "input")
        return tuple(
            PipelineRequest(
                f"{request_id}-{index}",
                {"talker": {"pace": request.speed, "stretch": request.stretch}},  # type: ignore[dict-item]
                silence_before_s=self.silence_s if index else 0.0,
                words=words,
            )
            for index, words in enumerate(sentences)
        )


def plan(
    text: str, *, continued: bool = False, batch: bool = False, speed: float = 1.0
) -> list[TextSegment | TextPause]:
    request = SpeechRequest(text, "v", speed=speed, continued=continued)
    return plan_segments(SentenceBuilder(), "r", replace(request, batch=batch))


class PausingBuilder(SentenceBuilder):
    """Its model reads pauses by itself, and makes silences between sentences."""

    capabilities = Capabilities(pauses=True)
    silence_s = 0.3


@pytest.mark.parametrize(("speed", "silence_s"), [(1.0, 0.3), (2.0, 0.15)])
def test_a_builder_s_silences_are_between_its_pieces_and_as_fast(
    speed: float, silence_s: float
) -> None:
    request = SpeechRequest("One. Two. Three.", "v", speed=speed)
    parts = plan_segments(PausingBuilder(), "r", request)
    kinds = [part.duration_s if isinstance(part, TextPause) else "piece" for part in parts]
    assert kinds == ["piece", silence_s, "piece", silence_s, "piece"]


def test_a_model_that_reads_pauses_gets_those_between_words() -> None:
    text = "[pause 1s]One [pause 2s] two [pause 3s]"
    request = SpeechRequest(text, "v")
    first, *spoken, last = plan_segments(PausingBuilder(), "r", request)
    assert (first, last) == (TextPause(1.0), TextPause(3.0))
    passages = {part.passage.text for part in spoken if isinstance(part, TextSegment)}
    assert passages == {"One [pause 2.0s] two "}
    for text in ("[pause 1s][pause 2s]", "[pause 1s] . [pause 2s]"):
        request = SpeechRequest(text, "v")
        parts = plan_segments(PausingBuilder(), "r", request)
        assert parts == [TextPause(1.0), TextPause(2.0)]


def collect_words(text: str, parts: list[TextSegment | TextPause]) -> list[str]:
    spans = [
        part.passage.source(span)
        for part in parts
        if isinstance(part, TextSegment)
        for span in part.request.words
    ]
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("speed", "pace", "stretch"),
    [(1.0, 1.0, 1.0), (0.9, 0.9, 1.0), (1.25, 1.25, 1.0), (2.5, 1.25, 2.0), (0.4, 0.8, 0.5)],
)
def test_a_speed_beyond_the_models_own_is_reached_by_stretching(
    speed: float, pace: float, stretch: float
) -> None:
    pieces = [
        part.request for part in plan("One. Two.", speed=speed) if isinstance(part, TextSegment)
    ]
    assert len(pieces) == 2
    assert {piece.inputs["talker"]["pace"] for piece in pieces} == {pace}  # type: ignore[index]
    assert {piece.inputs["talker"]["stretch"] for piece in pieces} == {stretch}  # type: ignore[index]
    assert {piece.stretch for piece in pieces} == {stretch}


def test_pieces_point_into_the_callers_text() -> None:
    text = "[pause 1s]One two. Three [pause 200ms] four. [pause 2s]"
    parts = plan(text, batch=True)
    kinds = [part if isinstance(part, TextPause) else "piece" for part in parts]
    assert kinds == [TextPause(1.0), "piece", "piece", TextPause(0.2), "piece", TextPause(2.0)]
    assert collect_words(text, parts) == ["One", "two", "Three", "four"]
    pieces = [part.request for part in parts if isinstance(part, TextSegment)]
    assert len({piece.request_id for piece in pieces}) == 3
    assert all(piece.batch for piece in pieces)


def test_words_keep_their_place_in_a_text_full_of_markup() -> None:
    text = (
        '<speak>**One** [two](http://a.b)<break time="1s"/>\n> un<b>fort</b>unate\n'
        'a\x1b[1m&amp;\x1b[0m b <sub alias="oh two">O2</sub></speak>'
    )
    assert collect_words(text, plan(text)) == [
        *("One", "two", "un<b>fort</b>unate", "a", "b", "O2", "O2")
    ]


def test_a_full_stop_behind_a_pause_is_no_fault() -> None:
    text = "One[pause 1s]."
    assert collect_words(text, plan(text)) == ["One"]


@pytest.mark.parametrize(
    "text",
    [
        "...",
        "\u2026",
        " ",
        "\n",
        "\U0001f60a",
        "\u2014",
        "*",
        "()",
        "?!",
        "\u3002",
        "<b></b>",
        "\u2192 \u2713",
        "**",
    ],
)
def test_a_text_without_words_is_a_short_silence(text: str) -> None:
    assert plan(text) == [TextPause(WORDLESS_S)]
    assert plan(text, continued=True) == []


def test_a_model_that_would_make_up_a_sound_is_not_asked_to_speak_punctuation() -> None:
    class Talkative(SentenceBuilder):
        def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
            return (PipelineRequest(request_id, {"talker": {}}),)  # type: ignore[dict-item]

    (silence,) = plan_segments(Talkative(), "r", SpeechRequest("...", "v"))
    assert silence == TextPause(WORDLESS_S)
    (sign,) = plan_segments(Talkative(), "r", SpeechRequest("\u20ac", "v"))
    assert isinstance(sign, TextSegment), "a euro sign is a word to some models"


def test_a_text_of_pauses_is_these_pauses() -> None:
    assert plan("[pause 1s] . [pause 2s]") == [TextPause(1.0), TextPause(2.0)]


def test_a_wrong_option_is_rejected_also_where_no_word_is_spoken() -> None:
    class Choosy(SentenceBuilder):
        def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
            raise InvalidRequest("no such style", "style")

    with pytest.raises(InvalidRequest, match="no such style"):
        plan_segments(Choosy(), "r", SpeechRequest("...", "v"))


def test_an_empty_text_is_rejected_unless_it_ends_another() -> None:
    with pytest.raises(InvalidRequest, match="input is empty") as refusal:
        check_text_length(0, 3)
    assert refusal.value.param == "input"
    check_text_length(0, 3, may_be_empty=True)
    assert plan("", continued=True) == []


def test_a_text_is_no_longer_than_its_model_speaks() -> None:
    check_text_length(3, 3)
    with pytest.raises(InvalidRequest, match="input has 4 characters; at most 3") as refusal:
        check_text_length(4, 3)
    assert refusal.value.param == "input"


def test_a_passage_that_cannot_be_spoken_is_rejected() -> None:
    with pytest.raises(InvalidRequest, match="no word for #"):
        plan("One [pause 1s] a # b", continued=True)


def test_words_are_on_the_utterances_clock_and_a_number_is_one() -> None:
    spans = (TextSpan(0, 2), TextSpan(3, 8), TextSpan(3, 8), TextSpan(9, 12))
    passage = Passage("x" * 12, range(100, 112), range(101, 113))
    piece = TextSegment(PipelineRequest("r", {}, words=spans), passage)
    timings = [WordTiming(i, 0.5 * i, 0.5 * i + 0.4) for i in range(4)]
    assert locate_words(piece, timings, began_s=2.0) == (
        SpokenWord(100, 102, 2.0, 2.4),
        SpokenWord(103, 108, 2.5, 3.4),
        SpokenWord(109, 112, 3.5, 3.9),
    )


def test_a_timing_of_no_word_fails_the_request() -> None:
    passage = Passage("Hi", range(2), range(1, 3))
    piece = TextSegment(PipelineRequest("r", {}, words=(TextSpan(0, 2),)), passage)
    with pytest.raises(RequestFailed, match="word 1 of 1"):
        locate_words(piece, [WordTiming(1, 0.0, 0.1)], began_s=0.0)


def test_a_listener_runs_dry_when_all_that_came_is_played() -> None:
    playback = Playback()
    assert playback.playout_deadline_s is None
    playback.take(100.0, 2.0)
    playback.take(101.0, 1.0)
    assert playback.playout_deadline_s == 103.0
    playback.take(105.0, 1.0)
    assert playback.playout_deadline_s == 106.0, "it stalled for two"


def test_prosody_changes_pace_and_loudness_of_its_own_text() -> None:
    first, second = plan('One. <prosody rate="50%" volume="-6dB">Two.</prosody>', speed=1.2)
    assert isinstance(first, TextSegment)
    assert isinstance(second, TextSegment)
    assert first.request.stretch == 1.0
    # The model's own slowest pace is 0.8.
    assert second.request.stretch == pytest.approx(1.2 * 0.5 / 0.8)
    assert second.passage.prosody.gain == pytest.approx(0.501, abs=0.001)


class EmphasisingBuilder(SentenceBuilder):
    """Keeps what it is asked for; its model makes words stand out, in one of two languages."""

    capabilities = Capabilities(
        phones=True, inflections=True, languages=("en", "fr"), options={"language": {}}
    )

    def __init__(self) -> None:
        self.asked: list[SpeechRequest] = []

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        self.asked.append(request)
        return super().build(request_id, request)


def test_words_that_stand_out_are_found_where_a_lexicon_has_put_them() -> None:
    builder = EmphasisingBuilder()
    text = "SQL <emphasis>SQL</emphasis>, <lang xml:lang='fr'>oui</lang>"
    lexicon = (LexiconEntry("SQL", alias="sequel"),)
    plan_segments(builder, "r", SpeechRequest(text, "v", lexicon=lexicon, options={"x": 1}))
    english, french = builder.asked
    (one,) = english.inflections
    assert english.text == "sequel sequel, "
    assert (one.span, one.inflection) == (TextSpan(7, 13), EMPHASES["moderate"])
    assert (french.text, french.options, french.inflections) == (
        "oui",
        {"x": 1, "language": "fr"},
        (),
    )
    assert english.options == {"x": 1}
