"""Random checkpoints in Hugging Face's form say what transformers' model says of the same sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound, SpeechWindow
from cantata_models.whisper import checkpoint as checkpoints
from cantata_models.whisper import recognizer as recognizers
from cantata_models.whisper.checkpoint import Vocabulary
from cantata_models.whisper.decoding import TextTask
from cantata_models.whisper.plugin import RECOGNIZE
from cantata_models.whisper.random_checkpoint import (
    ENGLISH,
    LARGE,
    MANY,
    RandomShape,
    write_random_checkpoint,
)
from cantata_models.whisper.recognizer import Attempt, WhisperRecognizer, load_recognizer
from cantata_models.whisper.request_builder import WhisperInputs, WhisperRequestBuilder
from cantata_models.whisper.tests.parity.reference import ReferenceWhisper
from cantata_models.whisper.words import FRAME_S

WHOLE = Attempt(3000, 0.0)
"""The reference hears every window with silence up to 30 s."""
CLOSE_ROWS = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A window, and how it is recognized."""

    name: str
    request: TranscriptionRequest
    seconds: float = 0.5
    shape: RandomShape = MANY

    @property
    def sound(self) -> Sound:
        rng = np.random.default_rng(sum(self.name.encode()))
        times = np.arange(round(self.seconds * SPEECH_RATE)) / SPEECH_RATE
        tone = np.sin(2 * np.pi * rng.uniform(100, 2000) * times * (1 + times / 3))
        return (0.2 * tone + rng.normal(0, 0.02, len(times))).astype(np.float32)


ASKED = TranscriptionRequest(timestamps=True)
CASES = (
    Case("english", replace(ASKED, language="en")),
    Case("german", replace(ASKED, language="de-AT")),
    Case("a renamed language", replace(ASKED, language="jv")),
    Case("translated", replace(ASKED, language="ja", translate=True)),
    Case("prompt", replace(ASKED, language="zh", prompt="北京, Shanghai")),
    Case("long prompt", replace(ASKED, language="en", prompt="Some words before. " * 100)),
    Case("language unknown", ASKED),
    Case("translated, unknown", replace(ASKED, translate=True, prompt="Names")),
    Case("a longer window", replace(ASKED, language="en"), seconds=6.0),
    Case("128 bins", replace(ASKED, language="yue"), shape=LARGE),
    Case("128 bins, unknown", ASKED, shape=LARGE),
    Case("english alone", ASKED, shape=ENGLISH),
    Case("english alone, prompt", replace(ASKED, prompt="Names: Ada"), shape=ENGLISH),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One checkpoint, here and there."""

    folder: Path
    builder: WhisperRequestBuilder
    recognizer: WhisperRecognizer
    reference: ReferenceWhisper
    vocabulary: Vocabulary

    def inputs(self, case: Case) -> WhisperInputs:
        inputs = self.builder.build("r", case.request, None).inputs[RECOGNIZE]
        assert isinstance(inputs, WhisperInputs)
        return inputs


Load = Callable[[RandomShape], Loaded]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    cached = tmp_path_factory.mktemp("cache")

    @cache
    def load_once(shape: RandomShape) -> Loaded:
        folder = write_random_checkpoint(tmp_path_factory.mktemp("random"), shape)
        recognizer = load_recognizer(folder, "cpu", "float32")
        is_multilingual = len(shape.languages) > 1
        return Loaded(
            folder,
            WhisperRequestBuilder(folder),
            recognizer,
            ReferenceWhisper(folder),
            Vocabulary(folder, is_multilingual=is_multilingual),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "user_cache_path", lambda name: cached / name)
        patch.setattr(recognizers, "ATTEMPTS", (WHOLE,))
        # Random weights speak in the silence after the sound.
        patch.setattr(WhisperRecognizer, "_drop_late", lambda self, tokens, seconds: tokens)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # such small networks only wait for a second one
        yield load_once
        torch.set_num_threads(threads)


def recognize(loaded: Loaded, *cases: Case) -> list[tuple[list[int], Transcript]]:
    windows = [SpeechWindow(loaded.inputs(case), case.sound) for case in cases]
    updates = loaded.recognizer.recognize(windows)
    return [(update.tokens.tolist(), update.transcript) for update in updates]


@pytest.mark.thorough(every=5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tokens_and_their_times_are_the_reference_s(load: Load, case: Case) -> None:
    loaded = load(case.shape)
    inputs, vocabulary, reference = loaded.inputs(case), loaded.vocabulary, loaded.reference
    encoded = reference.encode(case.sound)
    code = inputs.language or "en"
    if inputs.language is None and vocabulary.is_multilingual:
        code = reference.detect_language(encoded).strip("<|>")
    prompt = vocabulary.build_prompt(inputs.prompt, code, translate=inputs.translate)
    is_english = code == "en" or inputs.translate
    most = min(24 + int(case.seconds * (9 if is_english else 30)), 224, 448 - len(prompt))
    expected = reference.decode(encoded, prompt, most)
    assert len(expected) > 1, "a text that is worth the comparison"

    [(tokens, transcript)] = recognize(loaded, case)
    assert tokens == expected
    assert transcript.text == vocabulary.decode(expected).strip()
    assert transcript.language == ("en" if inputs.translate else vocabulary.tag(code))
    assert [bytes(one.data) for one in transcript.logprobs] == [
        vocabulary.to_bytes(token) for token in expected
    ]

    decoder = loaded.recognizer._decoder
    heard = decoder.encode(case.sound, WHOLE.frames)
    aligned = decoder.align(TextTask(case.sound, inputs, code, heard, 0.0, prompt), expected)
    start = vocabulary.build_start(code, translate=inputs.translate)
    rows = np.array(reference.align(encoded, start, expected))
    away = np.array([token.start_s for token in aligned]) / FRAME_S - rows
    assert np.abs(away).max() <= CLOSE_ROWS


def test_alone_a_window_is_what_it_is_in_company(load: Load) -> None:
    loaded = load(MANY)
    few = [case for case in CASES if case.shape is MANY][:3]
    together = recognize(loaded, *few)
    assert together == [recognize(loaded, case)[0] for case in few]
    assert together == recognize(loaded, *few[::-1])[::-1]


@pytest.mark.thorough
@pytest.mark.parametrize("beam_size", [1, 3])
def test_texts_that_are_decoded_together_are_those_decoded_alone(
    load: Load, monkeypatch: pytest.MonkeyPatch, beam_size: int
) -> None:
    """In integers. Random texts go on to their limits, which differ."""
    loaded = load(MANY)
    recognizer = load_recognizer(loaded.folder, "cpu", "int8")
    model, joined = recognizer._decoder._model, []

    def generate(encoded: Any, prompts: list[list[int]], **options: Any) -> Any:
        joined.append(len(prompts))
        return model.generate(encoded, prompts, **options)

    methods = {name: getattr(model, name) for name in ("encode", "align", "detect_language")}
    spy = SimpleNamespace(generate=generate, **methods)
    monkeypatch.setattr(recognizer._decoder, "_model", spy)
    requests = (ASKED, replace(ASKED, temperature=0.6), replace(ASKED, prompt="Names"))
    windows = [
        SpeechWindow(replace(loaded.inputs(case), beam_size=beam_size), case.sound)
        for request in requests
        for seconds in (0.5, 1.0, 0.5)
        for case in [Case(f"{len(request.prompt)} {seconds}", request, seconds)]
    ]
    together = [heard.transcript for heard in recognizer.recognize(windows)]
    assert max(joined) == (3 if beam_size == 1 else 2)
    assert len({heard.text for heard in together}) >= 4
    alone = [recognizer.recognize([window])[0].transcript for window in windows]
    assert together == alone


def test_sound_language_task_and_prompt_all_count(load: Load) -> None:
    """The comparison above would not notice a model that ignores them."""
    loaded = load(MANY)
    case = CASES[0]
    others = [
        replace(case, request=replace(case.request, language="de")),
        replace(case, request=replace(case.request, translate=True)),
        replace(case, request=replace(case.request, prompt="Some words.")),
        replace(case, name="another sound"),
    ]
    texts = [transcript.text for _, transcript in recognize(loaded, case, *others)]
    assert len(set(texts)) == len(texts)


def test_a_checkpoint_is_found_and_converted_once(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(MANY)
    assert locate(str(loaded.folder)).plugin.name == "whisper"
    converted = checkpoints.convert(loaded.folder)
    assert checkpoints.convert(converted) == converted
    assert locate(str(converted)).plugin.name == "whisper"
    before = (converted / "model.bin").stat().st_mtime_ns
    assert checkpoints.convert(loaded.folder) == converted
    assert (converted / "model.bin").stat().st_mtime_ns == before
    assert [path.name for path in converted.parent.iterdir()].count(converted.name) == 1


def test_what_a_checkpoint_knows(load: Load) -> None:
    many, large, english = [load(shape).builder for shape in (MANY, LARGE, ENGLISH)]
    assert len(many.languages) == 99
    assert many.languages[0] == "en"
    assert "jv" in many.languages
    assert "jw" not in many.languages
    assert large.languages == (*many.languages, "yue")
    assert english.languages == ("en",)
    assert [one.translates for one in (many, large, english)] == [True, True, False]
    sizes = [checkpoints.read_config(load(shape).folder).mel_bins for shape in (MANY, LARGE)]
    assert sizes == [80, 128]


def test_languages_are_found_by_their_tags(load: Load) -> None:
    vocabulary = load(LARGE).vocabulary
    tags = ("en-GB", "pt_BR", "JV", "jw", "nb-NO", "nn", "cmn-Hans", "yue", "fil", "tlh", "")
    codes = ["en", "pt", "jw", "jw", "no", "nn", "zh", "yue", "tl", None, None]
    assert [vocabulary.find_code(tag) for tag in tags] == codes


def test_what_cannot_be_served_is_refused(load: Load) -> None:
    english, many = load(ENGLISH).builder, load(MANY).builder
    for builder, request, message in (
        (english, TranscriptionRequest("de"), "language 'de': valid: en$"),
        (many, TranscriptionRequest("tlh"), "language 'tlh': valid: en, zh, de"),
        (english, TranscriptionRequest(translate=True), "English alone"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            builder.build("r", request, None)


def test_a_folder_that_cannot_be_converted_says_so(load: Load, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((load(MANY).folder / name).read_bytes())
    with pytest.raises(ConfigError, match="cannot be converted"):
        checkpoints.convert(tmp_path)
    with pytest.raises(ConfigError):
        Vocabulary(tmp_path / "nowhere", is_multilingual=True)
