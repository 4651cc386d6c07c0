"""The order of a prompt: tokens, and patches of a recording in front of the text or behind it.

Letters: L positions, K patches, E numbers of a patch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cantata_models.voxcpm2.config import (
    AUDIO_START,
    REFERENCE_END,
    REFERENCE_START,
)
from cantata_models.voxcpm2.prompt import VoxCpm2Mode

NO_TOKEN = 0


PRIMING_PATCHES = 3
"""Of a recording that is continued: those that the decoder hears, as in the published program."""


@dataclass(frozen=True, slots=True)
class VoxCpm2PromptLayout:
    """What stands at each position: a token, or a patch."""

    tokens: torch.Tensor
    """[L] int64; where a patch stands, any."""
    is_patch: torch.Tensor
    """[L] bool."""
    patches: torch.Tensor
    """[K, E] float32, in the order of their positions."""
    context: torch.Tensor | None
    """[up to 3, E]: the patches that what is spoken follows directly; None: it follows text."""


def lay_out(text: Sequence[int], mode: VoxCpm2Mode, recording: torch.Tensor) -> VoxCpm2PromptLayout:
    """Return the layout of a request. `recording`: [K, E] patches, as the encoder stage makes them:
    of a `COMBINED` request first those in front of the text, then as many behind it."""
    in_front = len(recording) // 2 if mode is VoxCpm2Mode.COMBINED else len(recording)
    behind = 0
    if mode.continues:
        behind = len(recording) - in_front if mode is VoxCpm2Mode.COMBINED else len(recording)
    tokens, is_patch = list[int](), list[bool]()

    def place(ids: Sequence[int], *, patches: bool) -> None:
        tokens.extend(ids)
        is_patch.extend([patches] * len(ids))

    if mode.imitates:
        place([REFERENCE_START], patches=False)
        place([NO_TOKEN] * in_front, patches=True)
        place([REFERENCE_END], patches=False)
    place([*text, AUDIO_START], patches=False)
    place([NO_TOKEN] * behind, patches=True)
    return VoxCpm2PromptLayout(
        torch.tensor(tokens),
        torch.tensor(is_patch),
        recording,
        recording[-min(PRIMING_PATCHES, behind) :] if behind else None,
    )
