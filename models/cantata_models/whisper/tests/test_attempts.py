"""How often a window is decoded, and which result counts: over a model that follows a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.contract.data.transcripts import SPEECH_RATE, Transcript
from cantata.contract.model.recognizer import SpeechWindow
from cantata_models.whisper.checkpoint import Vocabulary
from cantata_models.whisper.plugin import PLUGIN
from cantata_models.whisper.recognizer import WhisperRecognizer
from cantata_models.whisper.request_builder import WhisperInputs

LOOP = " I was at the shop. I was at the shop."
OTHER_LOOP = " We all went home now. We all went home now. We all went home now."


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says at one attempt."""

    text: str
    score: float = -0.3
    no_speech: float = 0.0
    row: int = 1
    """Of the encoder, for each token."""


@dataclass
class ScriptedWhisper:
    """Says one thing after the other; notes what it was given."""

    script: Sequence[Said]
    vocabulary: Vocabulary
    frames: list[int] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[list[int]] = field(default_factory=list)

    def encode(self, mels: Any, *, to_cpu: bool) -> int:
        self.frames.append(mels.shape[2])
        return self.frames[-1]

    def generate(self, encoded: int, prompts: list[list[int]], **options: Any) -> list[Any]:
        said = self.script[len(self.options)]
        self.options.append(options)
        self.prompts += prompts
        numbers = [*self.vocabulary.encode(said.text), self.vocabulary.end]
        return [
            SimpleNamespace(
                sequences_ids=[numbers],
                scores=[said.score],
                no_speech_prob=said.no_speech,
                logits=[[self._score(number, said.score) for number in numbers]],
            )
        ]

    def _score(self, token: int, logprob: float) -> NDArray[np.float64]:
        """Of each token, this one by far the likeliest."""
        others = -math.expm1(logprob) / self.vocabulary.end
        scores = np.full(self.vocabulary.end + 1, math.log(others))
        scores[token] = logprob
        return scores

    def align(self, encoded: int, start: list[int], texts: list[list[int]], frames: int) -> Any:
        assert encoded == frames
        [text] = texts
        row = self.script[len(self.options) - 1].row
        pairs = [(number, number * row) for number in range(len(text))]
        return [SimpleNamespace(alignments=pairs, text_token_probs=[0.5] * len(text))]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary()


def load_vocabulary() -> Vocabulary:
    assert PLUGIN.embedded_checkpoint is not None
    return Vocabulary(PLUGIN.embedded_checkpoint, is_multilingual=False)


def recognize(
    model: ScriptedWhisper, seconds: float = 2.0, prompt: str = "", temperature: float | None = None
) -> Transcript:
    inputs = WhisperInputs("en", False, prompt, temperature, timestamps=True, beam_size=1)
    sound = np.random.default_rng(0).normal(0, 0.1, round(seconds * SPEECH_RATE))
    recognizer = WhisperRecognizer(model, model.vocabulary, 80, is_exact=True)
    [update] = recognizer.recognize([SpeechWindow(inputs, sound.astype(np.float32))])
    return update.transcript


def test_a_good_result_is_the_only_one(vocabulary: Vocabulary) -> None:
    model = ScriptedWhisper([Said(" Good morning.")], vocabulary)
    assert recognize(model).text == "Good morning."
    assert model.frames == [1000]


def test_a_short_window_is_heard_with_silence_after_it(vocabulary: Vocabulary) -> None:
    for seconds, frames in ((2.0, 1000), (7.0, 1000), (12.0, 1500), (29.0, 3000), (30.0, 3000)):
        model = ScriptedWhisper([Said(" Yes.")], vocabulary)
        recognize(model, seconds)
        assert model.frames == [frames]


def test_what_is_unlikely_is_not_heard_anew(vocabulary: Vocabulary) -> None:
    model = ScriptedWhisper([Said(" Good morning.", score=-1.5)], vocabulary)
    assert recognize(model).text == "Good morning."
    assert model.frames == [1000]


def test_a_loop_is_heard_anew(vocabulary: Vocabulary) -> None:
    model = ScriptedWhisper([Said(LOOP), Said(" I was there.")], vocabulary)
    assert recognize(model).text == "I was there."
    assert model.frames == [1000, 2000]


def test_what_comes_out_twice_was_said(vocabulary: Vocabulary) -> None:
    model = ScriptedWhisper([Said(LOOP), Said(OTHER_LOOP), Said(LOOP)], vocabulary)
    assert recognize(model).text == LOOP.strip()
    assert model.frames == [1000, 2000, 3000]


def test_a_loop_in_a_long_window_is_not_heard_twice_in_the_same_way(
    vocabulary: Vocabulary,
) -> None:
    """It would be the same loop, and believed."""
    model = ScriptedWhisper([Said(LOOP), Said(" I was there.", score=-2.0)], vocabulary)
    assert recognize(model, 30.0).text == "I was there."
    assert model.options[1].get("return_logits_vocab"), "it is drawn"
    assert model.frames == [3000], "the encoder's output is the same"


def test_of_loops_alone_the_likeliest_counts(vocabulary: Vocabulary) -> None:
    loops = [f" {name} was at the shop." * 2 for name in ("Ada", "Bob", "Carl", "Dora")]
    scores = (-2.0, -1.2, -1.8, -1.5)
    script = [Said(loop, score) for loop, score in zip(loops, scores, strict=True)]
    model = ScriptedWhisper(script, vocabulary)
    assert recognize(model).text == loops[1].strip()
    assert [bool(one.get("return_logits_vocab")) for one in model.options] == [False] * 3 + [True]


def test_a_temperature_is_the_only_attempt(vocabulary: Vocabulary) -> None:
    model = ScriptedWhisper([Said(LOOP)], vocabulary)
    heard = recognize(model, temperature=0.7)
    assert (heard.text, heard.temperature) == (LOOP.strip(), 0.7)
    assert model.options[0].get("return_logits_vocab"), "it is drawn"


def test_no_speech_counts_only_if_the_words_are_unlikely(vocabulary: Vocabulary) -> None:
    unsure = Said(" you", score=-1.5, no_speech=0.9)
    heard = recognize(ScriptedWhisper([unsure], vocabulary))
    assert (heard.text, heard.words, heard.logprobs) == ("", (), ())
    assert heard.no_speech_prob == 0.9
    sure = ScriptedWhisper([Said(" you", no_speech=0.9)], vocabulary)
    assert recognize(sure).text == "you"


def test_marks_alone_are_no_words(vocabulary: Vocabulary) -> None:
    heard = recognize(ScriptedWhisper([Said(" . . .")], vocabulary))
    assert (heard.text, heard.words, heard.logprobs) == ("", (), ())


def test_words_after_the_sounds_end_are_dropped(vocabulary: Vocabulary) -> None:
    said = Said(" Good morning. Thank you.", row=30)
    heard = recognize(ScriptedWhisper([said], vocabulary), seconds=1.7)
    assert heard.text == "Good morning."
    assert [word.text for word in heard.words] == ["Good", "morning."]


@pytest.mark.parametrize("prompt", ["", "Names: Ada, Charles.", "And so on, and so forth. " * 90])
@pytest.mark.parametrize("seconds", [0.1, 5.0, 20.0, 30.0])
def test_a_text_has_the_room_of_fast_speech(
    vocabulary: Vocabulary, seconds: float, prompt: str
) -> None:
    """CTranslate2 gives the text the lesser of half of `max_length` and what the prompt leaves."""
    model = ScriptedWhisper([Said(" Yes.")], vocabulary)
    recognize(model, seconds, prompt)
    most, before = model.options[0]["max_length"], len(model.prompts[0])
    room = min(most // 2, most - before)
    assert most <= 448
    assert room >= min(7 * seconds + 10, 220)
    assert room <= 10 * seconds + 30, "a loop must end"
