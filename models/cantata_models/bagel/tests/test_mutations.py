"""The goldens are effective: a fault anywhere on the way to a picture fails a check."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.checks import check_answer, check_scenario
from cantata_models.bagel.tests.parity.conversations import CONVERSATIONS
from cantata_models.bagel.tests.parity.scenarios import SEED, scenario_named
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

BAGEL = "cantata_models.bagel"
DRAWING = f"{BAGEL}.tests.drawing"
MODULES = (
    *(f"{BAGEL}.{name}" for name in ("config", "inputs", "prompt", "pictures")),
    *(f"{BAGEL}.{name}" for name in ("vae", "language_model", "vision", "reader")),
    *(f"{BAGEL}.{name}" for name in ("picture_stages", "context_segments", "writing", "drawing")),
    *(f"{BAGEL}.{name}" for name in ("denoiser", "picture_builder", "chat_builder")),
    DRAWING,
)
"""In import order."""


def check(name: str, folder: Path) -> None:
    """One scenario, with modules as they are now."""
    check_scenario(importlib.import_module(DRAWING).Studio(folder), scenario_named(name))


def check_words(folder: Path) -> None:
    """A picture from words, wider than high."""
    check("wide", folder)


def check_channel(folder: Path) -> None:
    """One whose every token keeps its velocity's length."""
    check("by_channel", folder)


def check_edit(folder: Path) -> None:
    """A picture, changed."""
    check("edit", folder)


def check_thought(folder: Path) -> None:
    """A picture, changed behind a thought."""
    check("edit_thought", folder)


def check_conversation(folder: Path) -> None:
    """One that follows from several turns."""
    check("conversation", folder)


def check_words_of_answers(folder: Path) -> None:
    """An answer about two pictures."""
    studio = importlib.import_module(DRAWING).Studio(folder)
    (conversation,) = (one for one in CONVERSATIONS if one.name == "compare")
    check_answer(studio, conversation)


MUTANTS = (
    *mutants(
        f"{BAGEL}.prompt",
        check_words,
        ("(self.begin, *self._encode(text), self.end)", "(*self._encode(text), self.end)"),
    ),
    *mutants(
        f"{BAGEL}.pictures",
        check_edit,
        ("Resampling.BICUBIC", "Resampling.LANCZOS"),
    ),
    *mutants(f"{BAGEL}.picture_builder", check_words, ("(shift - 1) * times", "shift * times")),
    *mutants(
        f"{BAGEL}.vae",
        check_edit,
        ("    _draw_reference_noise(generator, references, numbers // PATCH**2)\n", ""),
        ("permute(1, 3, 2, 4, 0)", "permute(1, 3, 4, 2, 0)"),
    ),
    *mutants(
        f"{BAGEL}.drawing",
        check_edit,
        ("full, moved, dim=-1), no_images)", "full, moved, dim=None), no_images)"),
        ("no_images + guidance.image * (velocity", "velocity + guidance.image * (velocity"),
    ),
    *mutants(f"{BAGEL}.drawing", check_channel, ("min=guidance.min_scale", "min=0.0")),
    *mutants(
        f"{BAGEL}.inputs",
        check_channel,
        ("not low < np.float32(time) <= high", "not low < np.float32(time) < 2"),
    ),
    *mutants(
        f"{BAGEL}.language_model", check_words, ("1.0 / theta**exponents", "1.0 / 1e4**exponents")
    ),
    *mutants(
        f"{BAGEL}.language_model",
        check_edit,
        ("mask.tril(len(keys) - len(query))", "mask.tril()"),
        ("cls(mixture.drawn,", "cls(mixture.plain,"),
    ),
    *mutants(
        f"{BAGEL}.reader",
        check_words,
        ("[angles.cos(), angles.sin()]", "[angles.sin(), angles.cos()]"),
    ),
    *mutants(
        f"{BAGEL}.vision",
        check_edit,
        ("[:, None] * side", "[:, None] * grid.width"),
    ),
    *mutants(
        f"{BAGEL}.reader",
        check_edit,
        ("NO_NOISE = 0.0", "NO_NOISE = 1.0"),
    ),
    *mutants(
        f"{BAGEL}.context_segments",
        check_edit,
        (
            "context.and_(passed.block, 1)\n\n\ndef",
            "context.and_(passed.block, 2)\n\n\ndef",
        ),
    ),
    *mutants(
        f"{BAGEL}.writing",
        check_words_of_answers,
        ("replace(self.text.thinker, start=start)", "self.text.thinker"),
        ("(text, () if ended else (", "(text, () if not ended else ("),
    ),
    *mutants(
        f"{BAGEL}.denoiser",
        check_conversation,
        (
            "            prompt_at = len(segments)\n            segments += words",
            "            segments += words",
        ),
    ),
    *mutants(
        f"{BAGEL}.drawing",
        check_conversation,
        ("self.done < self.prompt_at", "self.done <= self.prompt_at"),
        (
            "no_images = piece.read(no_images, passed[1]) if",
            "no_images = piece.read(no_images, passed[0]) if",
        ),
        ("[full, no_images] if apart", "[full, full] if apart"),
    ),
    *mutants(
        f"{BAGEL}.prompt",
        check_conversation,
        ("[*earlier, *request.references]", "[*earlier[::-1], *request.references]"),
        ("        if text:\n", "        if True:\n"),
    ),
    *mutants(
        f"{BAGEL}.drawing",
        check_thought,
        ("Branch.FULL: full}", "Branch.NO_TEXT: full}"),
    ),
    *mutants(
        f"{BAGEL}.writing",
        check_thought,
        ("output.tokens == self.thinker.max_tokens", "output.tokens > self.thinker.max_tokens"),
        ("start.and_(self.block, self.computed)", "start.and_(self.block, 0)"),
    ),
    *mutants(
        f"{BAGEL}.vae",
        check_edit,
        ("torch.exp(0.5 * spread)", "torch.exp(spread)"),
    ),
    *mutants(f"{BAGEL}.vae", check_edit, ("(0, 1, 0, 1)", "(1, 0, 1, 0)")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED)


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, folder: Path) -> None:
    assert_caught(mutant, MODULES, folder)
