"""Texts that are drawn at a temperature: by the model that ships, and by laws that are known."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from cantata.contract.data.transcripts import TranscriptionRequest
from cantata_models.whisper.decoding import derive_seed, sample_text
from cantata_models.whisper.plugin import PLUGIN
from cantata_models.whisper.recognizer import load_recognizer
from cantata_models.whisper.tests.spoken import add_pink_noise, spoken_sentences
from cantata_models.whisper.tests.test_spoken import hear

PROBABILITIES = (0.5, 0.3, 0.2)
END = 2


class KnownLaw:
    """Each token has the same law, whatever came before; notes the texts that it went on from."""

    def __init__(self) -> None:
        self.begun: list[list[int]] = []

    def generate(self, encoded: Any, prompts: list[list[int]], **options: Any) -> list[Any]:
        [before] = prompts
        self.begun.append(before)
        scores = np.log(PROBABILITIES)
        return [SimpleNamespace(logits=[[scores] * (len(before) + 3)], no_speech_prob=0.25)]


def draw(seed: int, temperature: float = 1.0, max_tokens: int = 50) -> list[int]:
    law = KnownLaw()
    drawn = sample_text(
        law, None, [], END, max_tokens=max_tokens, temperature=temperature, seed=seed
    )
    assert drawn.no_speech_prob == 0.25
    # It goes on from exactly what was drawn.
    assert all(before == drawn.tokens[: len(before)] for before in law.begun)
    return drawn.tokens


def test_each_token_has_the_probability_that_the_model_gives_it() -> None:
    texts = [draw(seed) for seed in range(2000)]
    lengths = [len(text) for text in texts]
    tokens = Counter(token for text in texts for token in text)
    # A text of n tokens has the probability 0.8^n 0.2: four in the mean.
    assert abs(np.mean(lengths) - 4) < 0.4
    assert abs(tokens[0] / tokens.total() - 5 / 8) < 0.03


def test_a_low_temperature_draws_the_likeliest() -> None:
    assert draw(0, temperature=0.01, max_tokens=20) == [0] * 20


def test_the_seed_depends_on_sound_and_prompt() -> None:
    sound = np.linspace(-1, 1, 100).astype(np.float32)
    seeds = {derive_seed(sound, [1]), derive_seed(sound, [2]), derive_seed(sound[::-1], [1])}
    assert len(seeds) == 3
    assert derive_seed(sound.copy(), [1]) in seeds


def test_a_cold_draw_is_what_ctranslate2_decodes_with_its_score() -> None:
    assert PLUGIN.embedded_checkpoint is not None
    recognizer = load_recognizer(PLUGIN.embedded_checkpoint, "cpu", "int8")
    sound = spoken_sentences()[2].sound
    encoded = recognizer._decoder.encode(sound, 1000).output
    vocabulary = recognizer._vocabulary
    prompt = vocabulary.build_prompt("A visit.", "en", translate=False)
    [greedy] = recognizer._decoder._model.generate(
        encoded, [prompt], beam_size=1, return_scores=True, return_no_speech_prob=True
    )
    assert len(greedy.sequences_ids[0]) > 16, "it is decoded in several parts"
    cold = sample_text(
        recognizer._decoder._model,
        encoded,
        prompt,
        vocabulary.end,
        max_tokens=60,
        temperature=1e-6,
        seed=1,
    )
    assert cold.tokens == greedy.sequences_ids[0]
    assert abs(cold.avg_logprob - greedy.scores[0]) < 1e-3
    assert cold.no_speech_prob == greedy.no_speech_prob


def test_the_same_request_has_the_same_text_whatever_was_heard_between() -> None:
    said = add_pink_noise(spoken_sentences()[0].sound, -10.0, 1)
    warm = TranscriptionRequest(temperature=1.0)
    first = hear(said, warm)
    other = hear(add_pink_noise(said, 40.0, 2), warm)
    assert hear(said, warm) == first
    assert hear(said, TranscriptionRequest(temperature=0.0)).text != first.text
    assert other.text != first.text
