"""The goldens are effective: a fault anywhere on the way to a picture fails a check."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cantata_models.qwen_image.tests.checks import check_scenario
from cantata_models.qwen_image.tests.parity.scenarios import checkpoint_for, scenario_named
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

LAYERS = "cantata_layers.qwen_image"
DRAWING = "cantata_models.qwen_image.tests.drawing"
MODULES = (
    f"{LAYERS}.grid",
    *(f"{LAYERS}.text.{name}" for name in ("prompts", "pictures", "encoder")),
    *(f"{LAYERS}.{name}" for name in ("schedule", "defaults", "sampling", "lora")),
    *(f"{LAYERS}.transformer.{name}" for name in ("rotation", "modulation", "packing")),
    *(f"{LAYERS}.transformer.{name}" for name in ("blocks", "network", "load")),
    *(f"{LAYERS}.vae.{name}" for name in ("encoder_decoder", "coder")),
    *(f"{LAYERS}.stages.{name}" for name in ("encode", "autoencoder", "denoise", "builder")),
    DRAWING,
)
"""In import order."""


def check(name: str, folder: Path) -> None:
    """One scenario, with modules as they are now."""
    scenario = scenario_named(name)
    studio = importlib.import_module(DRAWING).Studio(checkpoint_for(scenario, folder))
    check_scenario(studio, scenario)


def check_text(folder: Path) -> None:
    """A picture from text: guided, wider than high, with the negative prompt that is implied."""
    check("wide", folder)


def check_long(folder: Path) -> None:
    """One from a text that is too long."""
    check("long", folder)


def check_edit(folder: Path) -> None:
    """One picture, changed."""
    check("edit_sized", folder)


def check_still(folder: Path) -> None:
    """One from two others, which are modulated as without noise."""
    check("still_two", folder)


def check_lora(folder: Path) -> None:
    """One with weights of which the metadata says how strong they are."""
    check("lora", folder)


def check_kohya(folder: Path) -> None:
    """One with weights that say it themselves."""
    check("kohya_lora", folder)


def check_lightning(folder: Path) -> None:
    """One with another schedule."""
    check("lightning", folder)


TRANSFORMER, TEXT, SAMPLING = f"{LAYERS}.transformer", f"{LAYERS}.text", f"{LAYERS}.sampling"
MUTANTS = (
    *mutants(
        f"{TEXT}.prompts",
        check_text,
        ("dropped=34", "dropped=33"),
        ('spatial "\n', 'spatial"\n'),
    ),
    *mutants(f"{TEXT}.prompts", check_edit, ("the original input", "the input")),
    *mutants(f"{TEXT}.prompts", check_still, ('"Picture {}: "', '"Picture {} "')),
    *mutants(f"{TEXT}.prompts", check_long, ("template.dropped + MAX_EMBEDDINGS", "600")),
    *mutants(
        f"{TEXT}.pictures",
        check_edit,
        ("ROUNDED = 32", "ROUNDED = 16"),
        ("Resampling.LANCZOS", "Resampling.BICUBIC"),
    ),
    *mutants(
        f"{TEXT}.encoder",
        check_edit,
        ('"mm_token_type_ids": (ids == self._picture_token).int(),', ""),
    ),
    *mutants(
        SAMPLING,
        check_text,
        ("manual_seed(seed)", "manual_seed(seed + 1)"),
        ("permute(1, 3, 0, 2, 4).reshape(-1, ch", "permute(1, 3, 2, 4, 0).reshape(-1, ch"),
        ("permute(2, 0, 3, 1, 4)", "permute(2, 0, 4, 1, 3)"),
    ),
    *mutants(
        f"{LAYERS}.schedule",
        check_text,
        ("1 / steps, steps)", "0.5 / steps, steps)"),
        ("(1 - config.terminal)", "(1 + config.terminal)"),
        ("- slope * config.min_tokens", "- slope * config.max_tokens"),
    ),
    *mutants(
        SAMPLING,
        check_text,
        ("negative + scale *", "velocity + scale *"),
        ("moved * (wanted / found)", "moved"),
        ("following) - torch.tensor(share)", "share) - torch.tensor(following)"),
    ),
    *mutants(f"{LAYERS}.lora", check_kohya, ("alpha / by", "1.0")),
    *mutants(f"{LAYERS}.lora", check_lora, ('metadata.get("lora_alpha", rank)', "rank")),
    *mutants(f"{LAYERS}.defaults", check_lightning, (", few_steps_schedule()", ", schedule")),
    *mutants(
        f"{TRANSFORMER}.rotation",
        check_text,
        ("- (grid.width - grid.width // 2)", ""),
        ("even * sin + odd * cos", "even * sin - odd * cos"),
        ("rows.repeat_interleave(grid.width)", "rows.repeat(grid.width)"),
    ),
    *mutants(
        f"{TRANSFORMER}.rotation",
        check_still,
        ("torch.full((grid.tokens,), frame)", "rows.repeat_interleave(grid.width) * 0"),
    ),
    *mutants(f"{LAYERS}.grid", check_text, ("// 2, grid.width // 2)", ", grid.width)")),
    *mutants(f"{TRANSFORMER}.modulation", check_text, ("EPSILON = 1e-6", "EPSILON = 1e-2")),
    *mutants(
        f"{TRANSFORMER}.packing",
        check_text,
        ("part * (1 + scales", "part * (2 + scales"),
        ('functional.gelu(part, approximate="tanh")', "functional.gelu(part)"),
    ),
    *mutants(
        f"{TRANSFORMER}.modulation",
        check_text,
        ("PERIOD = 10_000", "PERIOD = 1_000"),
        ("[angles.cos(), angles.sin()]", "[angles.sin(), angles.cos()]"),
        ("TIMESTEPS * angles", "angles"),
    ),
    *mutants(
        f"{TRANSFORMER}.blocks",
        check_text,
        ("words.rotation(self.norm_added_k(", "(self.norm_added_k("),
        ("[m[:n] for m", "[m[-n:] for m"),
        ("pixels.add(image, of_image[2], seen)", "pixels.add(image, of_image[5], seen)"),
        ("words.modulated(layer_norm(text), of_text[3], of_text[4])", "text"),
    ),
    *mutants(
        f"{TRANSFORMER}.network",
        check_still,
        ("index if still is None else still", "index"),
        (
            "(1 + modulation.last[0]) + modulation.last[1]",
            "(1 + modulation.last[1]) + modulation.last[0]",
        ),
        ("self._layers.txt_norm(self._on_device(text))", "self._on_device(text)"),
    ),
    *mutants(
        f"{LAYERS}.vae.encoder_decoder",
        check_text,
        ("len(self.gamma) ** 0.5", "1.0"),
        ('mode="nearest-exact"', 'mode="bilinear"'),
    ),
    *mutants(f"{LAYERS}.vae.encoder_decoder", check_edit, ("(0, 1, 0, 1)", "(1, 0, 1, 0)")),
    *mutants(
        f"{LAYERS}.vae.coder",
        check_edit,
        ("tensor[:, :, -1]", "tensor[:, :, 0]"),
        ("float() - self._means) / self._stds", "float() - self._means)"),
        ("2.0 * colours - 1.0", "colours"),
    ),
    *mutants(f"{LAYERS}.vae.coder", check_text, ("* self._stds + self._means", "")),
    *mutants(
        f"{LAYERS}.vae.encoder_decoder", check_edit, ("chunk(2, dim=1)[0]", "chunk(2, dim=1)[1]")
    ),
    *mutants(f"{LAYERS}.stages.builder", check_text, ('NOTHING = " "', 'NOTHING = ""')),
    *mutants(
        f"{LAYERS}.stages.encode",
        check_edit,
        ("self._embed(inputs.negative, inputs.pictures, pictures)", "condition"),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield tmp_path_factory.mktemp("checkpoints")


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, folder: Path) -> None:
    assert_caught(mutant, MODULES, folder)
