"""Checks that a part of the checkpoint is of the kind that is served."""

from __future__ import annotations

from collections.abc import Collection

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields


def require_false(fields: JsonFields, *keys: str) -> None:
    """Refuse variants that these switches turn on.

    Raises:
        ConfigError: one of them is true.
    """
    for key in keys:
        if fields.get(key, bool, False):
            raise ConfigError(f"{fields.where}: {key}: true is not served; valid: false")


def require_one_of(fields: JsonFields, key: str, found: object, valid: Collection[object]) -> None:
    """Refuse other values.

    Raises:
        ConfigError: the value is none of these.
    """
    if found not in valid:
        choices = ", ".join(repr(choice) for choice in valid)
        raise ConfigError(f"{fields.where}: {key} {found!r} is not served; valid: {choices}")
