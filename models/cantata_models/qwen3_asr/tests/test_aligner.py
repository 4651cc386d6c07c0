"""The aligner splits, times and mends as transformers does, and takes part in the pipeline."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Qwen2Tokenizer, Qwen3ASRForTokenClassification
from transformers.models.qwen3_asr import processing_qwen3_asr
from transformers.models.qwen3_asr.feature_extraction_qwen3_asr import Qwen3ASRFeatureExtractor

from cantata.contract.data.chunks import Codes
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.transcripts import Transcript, TranscriptUpdate
from cantata.contract.model.feed_forward import Fed
from cantata_layers.omni.inputs import SoundFeatures
from cantata_layers.omni.tests.media import sound
from cantata_models.qwen3_asr import aligner as aligner_module
from cantata_models.qwen3_asr.aligner import (
    AlignerNetwork,
    TranscriptAligner,
    mend_times,
    split_words,
)
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER, load_config
from cantata_models.qwen3_asr.encoder import FeatureExtractor
from cantata_models.qwen3_asr.prompt import AlignerInput
from cantata_models.qwen3_asr.random_checkpoint import token_ids, write_aligner, write_checkpoint
from faults import Faults, Inject

PROCESSOR: Any = processing_qwen3_asr.Qwen3ASRProcessor
PROCESSING: Any = processing_qwen3_asr
TEXTS = (
    'Good morning, Ada! It\'s 9:45 — "well-known" at last.',
    "早上好，Ada。今天是2026年。",  # noqa: RUF001
    "Wie heißt du? ... Zoë O'Neill",
    "¿Qué tal? «Bien», dijo.",
    "  一  二three四  ",
    "... !",
    "",
)
SOUND = sound(6.3, 21).samples
CPU = torch.device("cpu")


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_transformers_words(text: str) -> None:
    theirs = PROCESSOR.split_words_for_alignment(SimpleNamespace(), text)
    units = split_words(text)
    assert [unit.spoken for unit in units] == theirs
    written = "".join("".join(unit.written.split()) for unit in units)
    assert not units or written == "".join(text.split())


def test_words_keep_their_punctuation() -> None:
    units = split_words('He said: "Good morning, Ada." 你好。世界。')
    written = ["He", "said:", '"Good', "morning,", 'Ada."', "你", "好。", "世", "界。"]
    assert [unit.written for unit in units] == written


def test_times_are_mended_as_by_transformers() -> None:
    source = random.Random(1)
    for _ in range(300):
        times = [80.0 * source.randint(0, 30) for _ in range(source.randint(1, 24))]
        mended = mend_times(times)
        assert mended == PROCESSING._fix_timestamps(np.array(times)), times
        assert mended == sorted(mended)


class ReferenceAligner:
    """transformers' own.

    Args:
        checkpoint: as transformers saves it.
    """

    def __init__(self, checkpoint: Path) -> None:
        model: Any = Qwen3ASRForTokenClassification
        self._model = model.from_pretrained(str(checkpoint), attn_implementation="eager").eval()
        extractor: Any = Qwen3ASRFeatureExtractor
        tokenizer = Qwen2Tokenizer.from_pretrained(str(checkpoint))
        self._processor = PROCESSOR(extractor(), tokenizer, "")

    @torch.no_grad()
    def align(self, text: str) -> list[dict[str, Any]]:
        """Words of a text in `SOUND`, with `start_time` and `end_time` in seconds."""
        words = self._processor.split_words_for_alignment(text)
        prompt = "<|audio_start|><|audio_pad|><|audio_end|>"
        prompt += "".join(f"{word}<timestamp><timestamp>" for word in words)
        inputs = self._processor(text=prompt, audio=SOUND)
        logits = self._model(**inputs).logits
        [items] = self._processor.decode_forced_alignment(
            logits, inputs["input_ids"], [words], token_ids()["<timestamp>"]
        )
        return list(items)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> ReferenceAligner:
    folder = tmp_path_factory.mktemp("reference")
    return ReferenceAligner(write_aligner(folder, 2, is_published=False))


@pytest.fixture(scope="module", params=[True, False], ids=["published", "saved_again"])
def aligner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> TranscriptAligner:
    folder = write_checkpoint(tmp_path_factory.mktemp("asr"), 1)
    write_aligner(folder / ALIGNER_FOLDER, 2, is_published=request.param)
    return TranscriptAligner(folder, CPU)


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> SoundFeatures:
    config = load_config(write_checkpoint(tmp_path_factory.mktemp("asr"), 1))
    return FeatureExtractor(config).extract(SOUND)


def transcribe(
    aligner: TranscriptAligner,
    features: SoundFeatures,
    text: str,
    language: str = "en",
    *,
    is_wanted: bool = True,
) -> Transcript:
    tokens = aligner._tokenizer.encode(text, add_special_tokens=False).ids
    inputs = AlignerInput(features, len(SOUND) / 16_000, language, is_wanted)
    codes = Codes(np.array(tokens, np.int32).reshape(-1, 1))
    with torch.inference_mode():
        [made] = aligner.run([Fed(inputs, {"codes": codes})])
    assert isinstance(made, dict)
    update = made["transcript"]
    assert isinstance(update, TranscriptUpdate)
    return update.transcript


def check(aligner: TranscriptAligner, features: SoundFeatures, reference: ReferenceAligner) -> None:
    """Fail if a word's times are not the reference's."""
    for text in TEXTS[:4]:
        made = transcribe(aligner, features, text)
        theirs = reference.align(text)
        longest = len(SOUND) / 16_000
        times = [(word.start_s, word.end_s) for word in made.words]
        assert times == [
            (min(w["start_time"], longest), min(w["end_time"], longest)) for w in theirs
        ]


def test_times_are_the_reference_s(
    aligner: TranscriptAligner, features: SoundFeatures, reference: ReferenceAligner
) -> None:
    check(aligner, features, reference)
    words = transcribe(aligner, features, TEXTS[0]).words
    assert " ".join(word.text for word in words) == TEXTS[0]
    assert all(0 <= word.start_s <= word.end_s <= len(SOUND) / 16_000 for word in words)
    assert all(0 < word.probability <= 1 for word in words)
    assert len({word.start_s for word in words}) > 2


@pytest.mark.parametrize(
    ("text", "language", "is_wanted", "found", "words"),
    [
        ("Good morning.", "en", False, "en", 0),
        ("language English<asr_text>Good morning.", "", True, "en", 2),
        ("language None<asr_text>", "", True, "", 0),
        ("おはよう", "ja", True, "ja", 0),
        ("...", "en", True, "en", 0),
        ("", "en", True, "en", 0),
    ],
)
def test_only_words_of_a_known_language_have_times(
    aligner: TranscriptAligner,
    features: SoundFeatures,
    text: str,
    language: str,
    is_wanted: bool,
    found: str,
    words: int,
) -> None:
    made = transcribe(aligner, features, text, language, is_wanted=is_wanted)
    assert made.language == found
    assert len(made.words) == words
    assert made.text == text.split("<asr_text>")[-1]
    assert made.seconds == len(SOUND) / 16_000


def test_no_word_ends_behind_the_sound(aligner: TranscriptAligner, features: SoundFeatures) -> None:
    codes = Codes(np.array(aligner._tokenizer.encode(TEXTS[0]).ids, np.int32)[:, None])
    with torch.inference_mode():
        [made] = aligner.run([Fed(AlignerInput(features, 0.5, "en", True), {"codes": codes})])
    assert isinstance(made, dict)
    assert max(word.end_s for word in made["transcript"].transcript.words) == 0.5


def test_a_checkpoint_that_writes_does_not_align(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="writes text"):
        AlignerNetwork(write_checkpoint(tmp_path, 1), CPU)


fault = Faults[TranscriptAligner]()


@fault("marks")
def a_space_before_a_word(made: TranscriptAligner, patch: pytest.MonkeyPatch) -> None:
    prompt = AlignerNetwork.prompt

    def spaced(self: AlignerNetwork, rows: int, words: Sequence[str]) -> torch.Tensor:
        return prompt(self, rows, [f" {word}" for word in words])

    patch.setattr(AlignerNetwork, "prompt", spaced)


@fault("order")
def times_are_not_mended(made: TranscriptAligner, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aligner_module, "mend_times", lambda times: times)


@fault("steps")
def steps_of_40_ms(made: TranscriptAligner, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(made._network, "_step_ms", 40.0)


@fault("sound")
def the_sound_is_not_filled_to_a_window(made: TranscriptAligner, patch: pytest.MonkeyPatch) -> None:
    quiet = SimpleNamespace(
        pad=lambda mels, sides: torch.nn.functional.pad(mels, sides, value=-1.5)
    )
    patch.setattr(aligner_module, "functional", quiet)


@fault("ends")
def times_from_the_end(made: TranscriptAligner, patch: pytest.MonkeyPatch) -> None:
    align = AlignerNetwork.align

    def swapped(self: AlignerNetwork, *args: Any) -> Any:
        marks = align(self, *args)
        return replace(marks, milliseconds=marks.milliseconds[::-1])

    patch.setattr(AlignerNetwork, "align", swapped)


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("name", "inject"), fault.cases, ids=lambda one: getattr(one, "__name__", one)
)
def test_a_fault_is_seen(
    name: str,
    inject: Inject[TranscriptAligner],
    aligner: TranscriptAligner,
    features: SoundFeatures,
    reference: ReferenceAligner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inject(aligner, monkeypatch)
    with pytest.raises(AssertionError):
        check(aligner, features, reference)
