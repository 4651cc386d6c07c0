"""The solver as a step that a graph can hold, and patches of different steps in one batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cantata.stages.common.graphs import ShapeGraphs
from cantata_models.voxcpm2.config import VoxCpm2Config, load_config
from cantata_models.voxcpm2.patch_solver import Conditions, PatchEncoder, PatchSolver
from cantata_models.voxcpm2.tests.parity.scenarios import TINY_3

CPU, META = torch.device("cpu"), torch.device("meta")
MIXED = (10, 2, 0, 50, 10, 3, 26)
"""Of 50 and of 26 steps, two and one are still ones."""


class OnOneDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fails where a tensor is made on the host, or comes from there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for value in tree_leaves((args, kwargs, made)):
            if isinstance(value, torch.Tensor) and value.device == CPU:
                raise AssertionError(f"{func} has a tensor on the host")
        return made


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> VoxCpm2Config:
    return load_config(TINY_3.write(tmp_path_factory.mktemp("voxcpm2")))


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def random_solver(config: VoxCpm2Config) -> PatchSolver:
    generator = torch.Generator().manual_seed(0)
    solver = PatchSolver(config)
    for parameter in solver.parameters():
        parameter.normal_(0.0, 0.2, generator=generator)
    return solver


def random_inputs(
    config: VoxCpm2Config, rows: int, device: torch.device = CPU
) -> tuple[torch.Tensor, Conditions]:
    generator = torch.Generator(CPU).manual_seed(rows)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(rows, *shape, generator=generator).to(device)

    patch = (config.patch_size, config.latent_dim)
    given = Conditions(
        hidden=normal(2, config.dit.hidden_size),
        previous=normal(*patch),
        guidance=2.0 + normal(),
    )
    return normal(*patch), given


def chosen(given: Conditions, rows: slice) -> Conditions:
    return Conditions(*(getattr(given, field.name)[rows] for field in fields(given)))


def test_patches_of_different_steps_are_what_each_is_alone(config: VoxCpm2Config) -> None:
    solver = random_solver(config)
    noise, given = random_inputs(config, len(MIXED))
    together = solver(noise, given, MIXED)
    for row, steps in enumerate(MIXED):
        own = slice(row, row + 1)
        alone = solver(noise[own], chosen(given, own), (steps,))
        assert torch.equal(together[own], alone), f"{steps} steps"
        assert torch.equal(alone, noise[own]) == (steps == 0)


def test_patches_of_different_steps_share_their_forwards(config: VoxCpm2Config) -> None:
    solver, forwards = random_solver(config), list[int]()
    solver.estimator.register_forward_hook(lambda _, given, made: forwards.append(made.shape[1]))
    solver(*random_inputs(config, 3), (4, 6, 4))
    assert forwards == [3, 3, 3, 1, 1]


def test_what_was_given_is_not_changed(config: VoxCpm2Config) -> None:
    """A graph's static inputs are read again at its next replay."""
    solver = random_solver(config)
    noise, given = random_inputs(config, 2)
    kept = noise.clone(), given.hidden.clone()
    first = solver(noise, given, (10, 10))
    assert torch.equal(noise, kept[0])
    assert torch.equal(given.hidden, kept[1])
    assert torch.equal(solver(noise, given, (10, 10)), first)


@pytest.mark.parametrize("steps", [2, 10, 50])
def test_after_its_first_call_nothing_comes_from_the_host(
    config: VoxCpm2Config, steps: int
) -> None:
    """What a graph could not hold; tensors without values cannot be read either."""
    solver, encoder = PatchSolver(config).to(META), PatchEncoder(config).to(META)
    noise, given = random_inputs(config, 4, META)
    solver(noise, given, (steps,) * 4)
    watched = OnOneDevice()  # type: ignore[no-untyped-call]
    with watched:
        made = solver(noise, given, (steps,) * 4)
        assert encoder(made).shape == (4, config.encoder.hidden_size)
    assert made.shape == noise.shape
    with pytest.raises(AssertionError, match="on the host"), watched:
        solver(noise, given, (steps + 1,) * 4)


def test_graphs_of_one_number_of_steps_solve_as_the_solver_does(config: VoxCpm2Config) -> None:
    solver = random_solver(config)

    def solve(noise: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = solver(noise, Conditions(*given), (10,) * len(noise))
        return made

    def inputs(rows: int) -> tuple[torch.Tensor, ...]:
        noise, given = random_inputs(config, rows)
        return noise, given.hidden, given.previous, given.guidance

    graphs = ShapeGraphs(solve, CPU)
    for rows in (1, 2, 4):
        graphs.capture(*(torch.zeros_like(tensor) for tensor in inputs(rows)))
    for rows in (4, 1, 2):
        assert torch.equal(graphs(*inputs(rows)), solve(*inputs(rows)))
