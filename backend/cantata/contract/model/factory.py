"""Functions that plug-ins name, so that they are imported only where they are called."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from cantata.contract.data.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Factory:
    """Calls `package.module:function`, or makes an object of a class, imported by the first call.

    Every command imports every plug-in: what it calls may need torch, a tokenizer or an extra.

    Raises:
        ConfigError: (on a call) no such module or attribute.
    """

    target: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return resolve(self.target)(*args, **kwargs)


def resolve(target: str) -> Any:
    """Import `package.module:attribute`. Raises ConfigError: no such module or attribute."""
    module_name, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name and not module_name.startswith(error.name):
            raise ConfigError(
                f"{target!r} needs the package {error.name!r}, which is not installed; the model's "
                "page, or its extra in pyproject.toml, says how to install it"
            ) from error
        raise ConfigError(f"{target!r} cannot be imported: {error}") from error
    except AttributeError as error:
        raise ConfigError(f"{target!r} cannot be imported: {error}") from error
