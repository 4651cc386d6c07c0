"""A small recurrent network that predicts the phones of words outside the lexicon.

Each letter emits zero, one or two phones, chosen by a two-layer bidirectional GRU over the whole
word. It runs in NumPy: a word is too short for torch to pay off, and the result does not depend on
the number of threads. `solo/training/letter_to_sound.py` trains the weights.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

WEIGHTS_FILE = Path(__file__).with_name("letter_to_sound.safetensors")
ALPHABET = "abcdefghijklmnopqrstuvwxyz'"
LAYERS = 2
MAX_LETTERS = 64
"""Longer words are split into pieces of this many letters, which bounds the work."""

Array: TypeAlias = NDArray[np.float32]


def _apply_sigmoid(x: Array) -> Array:
    # tanh does not overflow where exp would.
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), dtype=np.float32)


class LetterToSound:
    """The trained network. `weights` are torch's GRU parameters; `chunks` names the outputs."""

    def __init__(self, weights: dict[str, Array], chunks: tuple[tuple[str, ...], ...]) -> None:
        self._weights = weights
        self._chunks = chunks

    @classmethod
    def load(cls, path: Path = WEIGHTS_FILE) -> LetterToSound:
        """Reads the weights (float16 in the file) and the output names from its metadata."""
        with safe_open(str(path), framework="numpy") as file:
            names = file.metadata()["chunks"].split(",")
            weights = {key: file.get_tensor(key).astype(np.float32) for key in file.keys()}  # noqa: SIM118
        return cls(weights, tuple(tuple(name.split()) for name in names))

    def __call__(self, word: str) -> tuple[str, ...]:
        """Returns the phones of a word in `ALPHABET`; other characters are ignored."""
        letters = [index for index in map(ALPHABET.find, word.lower()) if index >= 0]
        phones: list[str] = []
        for start in range(0, len(letters), MAX_LETTERS):
            for choice in self._choose(letters[start : start + MAX_LETTERS]):
                phones.extend(self._chunks[choice])
        return tuple(phones)

    def _choose(self, letters: list[int]) -> list[int]:
        hidden: Array = self._weights["embedding.weight"][letters]
        for layer in range(LAYERS):
            forward = self._run_gru(hidden, f"l{layer}")
            backward = self._run_gru(hidden[::-1], f"l{layer}_reverse")[::-1]
            hidden = np.concatenate([forward, backward], axis=1)
        logits = hidden @ self._weights["output.weight"].T + self._weights["output.bias"]
        return [int(choice) for choice in logits.argmax(axis=1)]

    def _run_gru(self, inputs: Array, suffix: str) -> Array:
        """Runs one direction of one layer: (letters, features) to (letters, hidden)."""
        w = self._weights
        recurrent, bias = w[f"gru.weight_hh_{suffix}"], w[f"gru.bias_hh_{suffix}"]
        projected = inputs @ w[f"gru.weight_ih_{suffix}"].T + w[f"gru.bias_ih_{suffix}"]
        state = np.zeros(recurrent.shape[1], dtype=np.float32)
        states = []
        for row in projected:
            # torch's gate order: reset, update, new.
            from_input = np.split(row, 3)
            from_state = np.split(recurrent @ state + bias, 3)
            reset = _apply_sigmoid(from_input[0] + from_state[0])
            update = _apply_sigmoid(from_input[1] + from_state[1])
            new = np.tanh(from_input[2] + reset * from_state[2])
            state = (1.0 - update) * new + update * state
            states.append(state)
        return np.stack(states)


@functools.cache
def load_letter_to_sound() -> LetterToSound:
    """Returns the shipped network, read on the first call."""
    return LetterToSound.load()


def phone_errors(wanted: tuple[str, ...], got: tuple[str, ...]) -> int:
    """Returns the edit distance between two phone sequences."""
    row = list(range(len(got) + 1))
    for i, phone in enumerate(wanted, start=1):
        previous, row[0] = row[0], i
        for j, other in enumerate(got, start=1):
            substitution = previous + (phone != other)
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, substitution)
    return row[-1]
