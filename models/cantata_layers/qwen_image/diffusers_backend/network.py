"""Steps of branches through diffusers' own forward, and its caches of steps, freed by branch.

The caches keep a state for each name of `cache_context` and can only forget all of them at once, so
a branch's states are taken from where they are kept (diffusers 0.42.1).

Letters: N noise tokens of a row, R reference tokens, T text tokens, E columns of a text embedding,
P numbers of a token, B rows of a forward."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.model.denoiser import Skipping, SkipTest
from cantata_layers.qwen_image.config import TIMESTEPS
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.stages.branches import BranchStep, Made
from cantata_layers.qwen_image.transformer.network import ReferenceTokens


def enable_cache(transformer: Any, skipping: Skipping) -> None:
    """Hook the cache that does this. Raises ConfigError: diffusers has none."""
    from diffusers import FirstBlockCacheConfig, TaylorSeerCacheConfig

    if skipping.test is SkipTest.INTERVAL:
        config: Any = TaylorSeerCacheConfig(
            cache_interval=int(skipping.limit),
            disable_cache_before_step=skipping.warmup_steps,
            max_order=skipping.order,
            taylor_factors_dtype=None,
        )
    elif skipping == Skipping(SkipTest.RESIDUAL, skipping.limit, 1, first_blocks=1):
        config = FirstBlockCacheConfig(threshold=skipping.limit)
    else:
        raise ConfigError(
            "cache: diffusers has no such cache for this model; valid with `hooked`: kind "
            "'first_block' with only a threshold, or 'taylorseer'"
        )
    transformer.enable_cache(config)


def forget(transformer: Any, name: str) -> None:
    """Free what is remembered of a branch."""
    for states in state_caches(transformer):
        states.pop(name, None)


def state_caches(transformer: Any) -> list[dict[str, Any]]:
    """States by branch, of every hook."""
    from diffusers.hooks.hooks import StateManager

    registries = [getattr(module, "_diffusers_hook", None) for module in transformer.modules()]
    return [
        value._state_cache
        for registry in registries
        if registry is not None
        for hook in registry.hooks.values()
        for value in vars(hook).values()
        if isinstance(value, StateManager)
    ]


@dataclass(frozen=True, slots=True)
class HookedCondition:
    """Inputs of a branch that are the same in every step."""

    text: torch.Tensor
    """[T, E]"""
    references: torch.Tensor
    """[R, P]"""
    grids: tuple[Grid, ...]
    """Of the picture that is drawn, then of the references."""


class HookedNetwork:
    """Implements `stages.denoise.Network`.

    Args:
        transformer: a QwenImageTransformer2DModel.
        alone: whether each row needs a forward of its own.
        remembers: whether a cache is hooked in, which needs to be told the branch.
        shares: the tokens of a row's pictures must be a multiple of this.
    """

    def __init__(
        self,
        transformer: Any,
        device: torch.device,
        dtype: torch.dtype,
        *,
        alone: bool,
        remembers: bool,
        shares: int = 1,
    ) -> None:
        self.transformer, self.device, self._dtype = transformer, device, dtype
        self._shares = shares
        self._alone, self._remembers = alone, remembers

    def prepare(
        self, text: torch.Tensor, grid: Grid, references: Sequence[ReferenceTokens] = ()
    ) -> HookedCondition:
        """What all steps of a branch share.

        Args:
            text: [T, E] embeddings.
            references: in their order.

        Raises:
            InvalidRequest: the ranks cannot share the tokens evenly.
        """
        count = grid.tokens + sum(reference.grid.tokens for reference in references)
        if count % self._shares:
            raise InvalidRequest(
                f"{count} tokens of pictures; this server computes multiples of {self._shares}, so "
                "an even number of 16 pixels on a side",
                "size",
            )
        tokens = [reference.tokens for reference in references]
        empty = torch.empty(0, self.transformer.config.in_channels)
        return HookedCondition(
            self._on_device(text),
            self._on_device(torch.cat([empty, *tokens])),
            (grid, *(reference.grid for reference in references)),
        )

    def group(self, condition: HookedCondition) -> tuple[Grid, ...]:
        """Rows of one forward have equal pictures."""
        return condition.grids

    def __call__(self, steps: Sequence[BranchStep]) -> list[Made]:
        """Compute steps of branches of one group."""
        batches = [[step] for step in steps] if self._alone else [steps]
        output = [velocity for batch in batches for velocity in self._compute_velocities(batch)]
        return [(velocity, step.memory) for velocity, step in zip(output, steps, strict=True)]

    @torch.inference_mode()
    def _compute_velocities(self, steps: Sequence[BranchStep]) -> list[torch.Tensor]:
        """[N, P] float32 of each."""
        rows = [step.row for step in steps]
        conditions: list[Any] = [row.condition for row in rows]
        pictures = [
            torch.cat([self._on_device(row.latents), condition.references])
            for row, condition in zip(rows, conditions, strict=True)
        ]
        texts = [condition.text for condition in conditions]
        lengths = torch.tensor([len(text) for text in texts], device=self.device)
        places = torch.arange(int(lengths.max()), device=self.device)
        # As the reference rounds: the timestep first, then its thousandth.
        shares = torch.tensor([row.share for row in rows], device=self.device)
        shapes = [[(1, grid.height, grid.width) for grid in c.grids] for c in conditions]
        name = steps[0].memory.name
        with self.transformer.cache_context(name) if self._remembers else nullcontext():
            (output,) = self.transformer(
                hidden_states=torch.stack(pictures),
                encoder_hidden_states=pad_sequence(texts, batch_first=True),
                encoder_hidden_states_mask=(
                    None if len(set(lengths.tolist())) == 1 else places < lengths[:, None]
                ),
                timestep=(shares * TIMESTEPS).to(self._dtype) / TIMESTEPS,
                img_shapes=shapes,
                return_dict=False,
            )
        return [
            velocity[: len(row.latents)].float() for velocity, row in zip(output, rows, strict=True)
        ]

    def _on_device(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.device, self._dtype)
