"""Phone ids: the index of a phone in `PHONE_INVENTORY`. Trained weights depend on the order."""

from __future__ import annotations

from collections.abc import Iterable

from cantata_models.solo.text.phones import PHONES, SIL

PHONE_INVENTORY: tuple[str, ...] = (*PHONES, SIL)
"""The 39 phones of pocketsphinx's dictionary, then silence."""

PHONE_IDS: dict[str, int] = {phone: index for index, phone in enumerate(PHONE_INVENTORY)}
SIL_ID = PHONE_IDS[SIL]


def phone_ids(phones: Iterable[str]) -> list[int]:
    """Returns the phones' ids.

    Raises:
        ValueError: a phone is not in the inventory.
    """
    try:
        return [PHONE_IDS[phone] for phone in phones]
    except KeyError as error:
        raise ValueError(
            f"unknown phone {error.args[0]!r}; the phones are {' '.join(PHONE_INVENTORY)}"
        ) from None
