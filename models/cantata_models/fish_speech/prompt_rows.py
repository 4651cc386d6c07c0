"""The rows of a prompt: those of its tokens, and between them those of the frames that stand there.

Letters: L positions, D hidden size, N tokens or frames, C frames, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cantata_models.fish_speech.prompt import FishTalkerInput, SpokenBefore


@dataclass(frozen=True, slots=True)
class Embedding:
    """A talker's."""

    tokens: Callable[[Sequence[int]], torch.Tensor]
    """N tokens -> [N, D]."""
    frames: Callable[[torch.Tensor], torch.Tensor]
    """[N, Q] int64 -> [N, D]."""


def prompt_rows(
    inputs: FishTalkerInput, recorded: torch.Tensor | None, embed: Embedding
) -> torch.Tensor:
    """Lay out a prompt.

    Args:
        inputs: its tokens, and what stands between them.
        recorded: [C, Q] int64 frames of its recordings, one after the other; None: it has none.
        embed: makes the rows.

    Returns:
        [L, D].
    """
    sections: list[tuple[int, torch.Tensor]] = []
    if recorded is not None:
        lengths = [recording.frames for recording in inputs.recordings]
        parts = torch.split(recorded, lengths)
        for recording, frames in zip(inputs.recordings, parts, strict=True):
            sections.append((recording.at, embed.frames(frames)))
    for turns in inputs.spoken:
        codes = embed.frames(torch.from_numpy(turns.codes).long())
        around = embed.tokens(turns.tokens), embed.tokens(turns.end)
        sections.append((inputs.spoken_at, torch.cat((around[0], codes, around[1]))))
    rows, pieces, done = embed.tokens(inputs.tokens), [], 0
    for place, section in sections:
        pieces += [rows[done:place], section]
        done = place
    return torch.cat((*pieces, rows[done:]))


def latest(spoken: Sequence[SpokenBefore], room: int, frames: int) -> tuple[SpokenBefore, ...]:
    """The latest turns that fit into a prompt.

    Args:
        spoken: the earliest first.
        room: positions for them and for the sound that follows.
        frames: of that sound, at most. It gets no more than half of the room, so that a high limit
            does not make the model forget what was said.
    """
    left = room - min(frames, room // 2)
    kept: list[SpokenBefore] = []
    for turns in reversed(spoken):
        left -= len(turns.tokens) + len(turns.codes) + len(turns.end)
        if left < 0:
            break
        kept.append(turns)
    return tuple(reversed(kept))
