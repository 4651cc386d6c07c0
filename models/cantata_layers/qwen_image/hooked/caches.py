"""diffusers' caches of steps, with their memory freed by branch.

They keep a state for each name of `cache_context` and can only forget all of them at once, so a
branch's states are taken from where they are kept (diffusers 0.42.1).
"""

from __future__ import annotations

from typing import Any

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.skipping import Skipping, SkipTest


def enable_cache(transformer: Any, skipping: Skipping) -> None:
    """Hook the cache that does this.

    Raises:
        ConfigError: diffusers has none.
    """
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
