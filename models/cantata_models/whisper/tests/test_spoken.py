"""What the recognizer that ships hears: sentences under several conditions, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import cache, partial

import numpy as np
import pytest

from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound, SpeechWindow
from cantata_bench.transcription.recordings import ReadSentence, over_telephone
from cantata_bench.transcription.run import bare_words, count_errors
from cantata_models.whisper.plugin import PLUGIN, RECOGNIZE
from cantata_models.whisper.recognizer import WhisperRecognizer, load_recognizer
from cantata_models.whisper.request_builder import WhisperRequestBuilder
from cantata_models.whisper.tests.spoken import add_pink_noise, make_pink_noise, spoken_sentences

CLOSE_S = 0.08
Change = Callable[[Sound, int], Sound]
"""What happens to a sentence's sound; its number is the seed."""
CONDITIONS: dict[str, Change] = {
    "clean": lambda sound, number: sound,
    "noise": lambda sound, number: add_pink_noise(sound, 10.0, number),
    "telephone": lambda sound, number: over_telephone(sound),
}


@cache
def _load() -> tuple[WhisperRequestBuilder, WhisperRecognizer]:
    folder = PLUGIN.embedded_checkpoint
    assert folder is not None
    return WhisperRequestBuilder(folder), load_recognizer(folder, "cpu", "int8")


def hear(sound: Sound, request: TranscriptionRequest | None = None) -> Transcript:
    builder, recognizer = _load()
    asked = request or TranscriptionRequest(timestamps=True)
    inputs = builder.build("r", asked, None).inputs[RECOGNIZE]
    [update] = recognizer.recognize([SpeechWindow(inputs, sound)])
    return update.transcript


def read_all(condition: str) -> tuple[ReadSentence, ...]:
    """All sentences, or under conditions that hurt each third one."""
    return spoken_sentences()[:: 1 if condition == "clean" else 3]


@cache
def hear_all(condition: str) -> tuple[Transcript, ...]:
    change = CONDITIONS[condition]
    return tuple(hear(change(one.sound, seed)) for seed, one in enumerate(read_all(condition)))


def late_starts(spoken: ReadSentence, heard: Transcript) -> list[float]:
    """Of the words that both have, in seconds after the voice's own."""
    wanted = ["".join(bare_words(word)) for word in spoken.text.split()]
    assert len(wanted) == len(spoken.word_starts)
    got = ["".join(bare_words(word.text)) for word in heard.words]
    return [
        heard.words[block.b + step].start_s - spoken.word_starts[block.a + step]
        for block in SequenceMatcher(None, wanted, got, autojunk=False).get_matching_blocks()
        for step in range(block.size)
    ]


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(("condition", "most"), [("clean", 5), ("noise", 10), ("telephone", 10)])
def test_words_are_heard(condition: str, most: float) -> None:
    """Found: 1.8%, 0.5%, 0.5%."""
    words = errors = 0
    for spoken, heard in zip(read_all(condition), hear_all(condition), strict=True):
        said, wrong = count_errors(spoken.text, heard.text)
        words, errors = words + said, errors + wrong
    assert words > 60
    assert 100 * errors / words <= most


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("condition", "share"), [("clean", 0.93), ("noise", 0.87), ("telephone", 0.9)]
)
def test_words_begin_when_the_voice_says_them(condition: str, share: float) -> None:
    """Found: 95%, 90% and 93%; of the alignment's own jumps 46%."""
    late = [
        late_s
        for spoken, heard in zip(read_all(condition), hear_all(condition), strict=True)
        for late_s in late_starts(spoken, heard)
    ]
    assert len(late) > 60
    assert abs(np.median(late)) < 0.02
    assert np.mean(np.abs(late) <= CLOSE_S) >= share


def test_silence_before_and_after_moves_the_words_with_the_sound() -> None:
    spoken = spoken_sentences()[0]
    before, after = np.zeros(SPEECH_RATE, np.float32), np.zeros(SPEECH_RATE // 2, np.float32)
    plain = hear_all("clean")[0]
    moved = hear(np.concatenate([before, spoken.sound, after]))
    assert moved.text == plain.text
    for word, other in zip(plain.words, moved.words, strict=True):
        assert other.start_s - 1.0 == pytest.approx(word.start_s, abs=CLOSE_S)
    assert moved.words[-1].end_s == pytest.approx(1.0 + plain.words[-1].end_s, abs=CLOSE_S)


def test_words_are_the_text_and_have_their_tokens() -> None:
    for heard in hear_all("clean"):
        assert " ".join(word.text for word in heard.words) == heard.text
        data = bytes(byte for token in heard.logprobs for byte in token.data)
        assert data.decode().strip() == heard.text
        assert sum(len(word.tokens) for word in heard.words) == len(heard.logprobs)
        assert all(0 <= word.start_s <= word.end_s <= heard.seconds for word in heard.words)
        assert all(0 < word.probability <= 1 for word in heard.words)
        assert all(token.logprob <= 0 for token in heard.logprobs)
        assert heard.avg_logprob is not None
        assert heard.avg_logprob > -1
        assert heard.language == "en"


def test_without_timestamps_the_text_is_the_same() -> None:
    spoken = spoken_sentences()[0]
    plain = hear(spoken.sound, TranscriptionRequest())
    assert plain.text == hear_all("clean")[0].text
    assert not plain.words
    assert not plain.logprobs


def test_in_company_a_sentence_is_what_it_is_alone() -> None:
    """Texts, times and probabilities, bit for bit."""
    builder, recognizer = _load()
    inputs = builder.build("r", TranscriptionRequest(timestamps=True), None).inputs[RECOGNIZE]
    sounds = [one.sound for one in spoken_sentences()[:6]]
    silence = np.zeros(0, np.float32)
    windows = [SpeechWindow(inputs, sound) for sound in (sounds[0], silence, *sounds[1:])]
    first, nothing, *others = [update.transcript for update in recognizer.recognize(windows)]
    assert (first, *others) == hear_all("clean")[:6]
    assert nothing == Transcript("")


def test_a_prompt_decides_how_words_are_spelled() -> None:
    spoken = next(one for one in spoken_sentences() if "twenty" in one.text)
    for number, prompt in (
        ("twenty", "Ten minutes, twenty minutes, thirty minutes."),
        ("20", "10 minutes, 20 minutes, 30 minutes."),
    ):
        heard = hear(spoken.sound, TranscriptionRequest(prompt=prompt))
        assert f"{number} minutes" in heard.text


def test_a_full_window_is_heard_to_its_end() -> None:
    spoken = spoken_sentences()[:8]
    heard = hear(np.concatenate([one.sound for one in spoken])[: 30 * SPEECH_RATE])
    assert heard.seconds > 25
    words, errors = count_errors(" ".join(one.text for one in spoken), heard.text)
    assert errors / words <= 0.1


def quiet(seconds: float) -> Sound:
    return np.zeros(round(seconds * SPEECH_RATE), np.float32)


def music(seconds: float) -> Sound:
    """Chords."""
    times = np.arange(round(seconds * SPEECH_RATE)) / SPEECH_RATE
    notes = [np.sin(2 * np.pi * hertz * times) for hertz in (220, 277.2, 329.6, 440)]
    swelling = np.sum(notes, axis=0) * (1 + np.sin(4 * np.pi * times))
    sound: Sound = (0.05 * swelling).astype(np.float32)
    return sound


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(partial(quiet, 0.0), id="nothing"),
        pytest.param(partial(quiet, 3.0), id="silence"),
        pytest.param(lambda: 0.05 * make_pink_noise(3 * SPEECH_RATE, 0), id="noise"),
        pytest.param(partial(music, 3.0), id="music"),
    ],
)
def test_what_is_no_speech_has_no_words(make: Callable[[], Sound]) -> None:
    heard = hear(make())
    assert heard.text == ""
    assert not heard.words
    assert not heard.logprobs
    assert heard.no_speech_prob is None or heard.no_speech_prob > 0.6
