"""Sources of a request's conditioning rows: its own input, text that arrives later, or an edge.

Letters: L rows, D hidden size, C frames, Q codebooks, E columns, A axes, V codes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, WordTiming
from cantata.contract.data.errors import ProtocolViolation
from cantata.contract.data.request import SamplingOptions, StageInput


class CodeGuide(Protocol):
    """Limits which code 0 may follow a request's earlier ones, as a grammar does. Its methods are
    called by one thread, inside steps, so they take microseconds."""

    def allowed(self) -> NDArray[np.bool_] | None:
        """[V]: which codes may be next, at least one. None: any."""
        ...

    def accept(self, code: int) -> None:
        """Take the code that was drawn: one that was allowed."""
        ...


@dataclass(frozen=True, slots=True)
class TalkerPrompt:
    """The beginning of a request, as the talker reads it."""

    rows: torch.Tensor
    """[L, D] float, or [L, W] with a `Talker.row_width`: input rows by position.
    L >= prompt_len."""
    prompt_len: int
    """Positions that are prefilled. 0: there is nothing to say; the request ends without a frame,
    and the other fields do not matter."""
    max_frames: int
    """Most frames of the request, even without an end code."""
    min_frames: int = 0
    """Fewest frames; the end code cannot be chosen before."""
    words: tuple[WordTiming, ...] = ()
    """When each word is heard, from a talker that fixes durations before it speaks. The times
    include the decoder's lag."""
    context: torch.Tensor | None = None
    """[C, Q] int64, or [C, E] float32 latents: frames that the request continues. They only prime
    the decoder."""
    frame_options: tuple[float, ...] = ()
    """As many as `Talker.num_frame_options`: the request's own numbers."""
    frame_steps: int = 0
    """If the talker has `usual_steps`: steps of each of the request's frames, at least 1."""
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    positions: torch.Tensor | None = None
    """[A, prompt_len] float32, if the talker has `rotary_axes`: the position of each row on each
    axis. Later rows count on from the largest. None: 0, 1, 2, ... on every axis."""
    token_ids: torch.Tensor | None = None
    """[prompt_len] int64 in 0..2^31-1, equal only where rows are equal. Requests that begin with
    the same ids share KV memory if the deployment caches prefixes. None: only equal prompts share
    it."""
    exports_rows: bool = True
    """If the talker has an `export_width`: whether rows leave the stage. If so, cached prefixes are
    computed anyway."""
    guide: CodeGuide | None = None
    """Says which codes 0 may follow, for a talker that draws them by their scores alone. None: any
    may."""


class EmbeddingSource(Protocol):
    """One request's rows. Its methods are called by one thread, between steps."""

    @property
    def open(self) -> bool:
        """Whether more may be fed. While it is true, a position waits for its row; afterwards, the
        last row is repeated."""
        ...

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Take new data: later text (a stage input), or a payload from an edge. Raises
        CantataError: it cannot be used, and the request fails."""
        ...

    def prompt(self) -> TalkerPrompt | None:
        """The beginning of the request; None if not enough has been fed. Asked again after each
        `feed` until it is there. Raises CantataError: the request cannot be spoken."""
        ...

    def more(self) -> torch.Tensor | None:
        """[L, D]: rows that follow those returned so far; None if there are none now. Rows that are
        made on demand come in blocks, each made when it is asked for."""
        ...


class StaticEmbeddings:
    """Implements `EmbeddingSource` for a request that arrived as a whole.

    Args:
        prompt: with its first rows.
        blocks: the rows behind them, [L, D] each, made one at a time before they are needed.
    """

    open = False

    def __init__(self, prompt: TalkerPrompt, blocks: Iterable[torch.Tensor] = ()) -> None:
        self._prompt = prompt
        self._blocks = iter(blocks)

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Reject any input: the request is complete. Raises ProtocolViolation: always."""
        raise ProtocolViolation("the request is complete")

    def prompt(self) -> TalkerPrompt | None:
        return self._prompt

    def more(self) -> torch.Tensor | None:
        """The next block of rows."""
        return next(self._blocks, None)


class StreamingEmbeddings:
    """Implements `EmbeddingSource` for a request whose text still arrives when it begins.

    Args:
        prompt: with the rows of the text so far.
        encode: [L, D] rows of a stage input that followed.
    """

    def __init__(self, prompt: TalkerPrompt, encode: Callable[[Any], torch.Tensor]) -> None:
        self._prompt = prompt
        self._encode = encode
        self._ready = deque[torch.Tensor]()
        self._open = True

    @property
    def open(self) -> bool:
        """True until the final input."""
        return self._open

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Encode more text.

        Raises:
            ProtocolViolation: the text is complete, or the item comes from an edge.
            CantataError: as `encode`.
        """
        if not self._open:
            raise ProtocolViolation("the text of this request is complete")
        if isinstance(item, Payload):
            raise ProtocolViolation(f"this request takes text, not {type(item).__name__}")
        self._ready.append(self._encode(item))
        self._open = not final

    def prompt(self) -> TalkerPrompt | None:
        return self._prompt

    def more(self) -> torch.Tensor | None:
        """The rows of the text that has arrived since the last call."""
        return self._ready.popleft() if self._ready else None


class DeferredRows:
    """Implements `EmbeddingSource` for a request whose prompt needs the output of other stages.

    Args:
        needed: one payload of each of these types, which may come in parts.
        begin: makes the source of the rows, from those payloads in the order of `needed`.
    """

    def __init__(
        self, needed: Sequence[type[Payload]], begin: Callable[[Sequence[Payload]], EmbeddingSource]
    ) -> None:
        self._parts: dict[type[Payload], list[Any]] = {kind: [] for kind in needed}
        self._missing = set(needed)
        self._begin = begin
        self._text: deque[tuple[StageInput, bool]] = deque()
        """Text that has arrived, and whether it is the last."""
        self._source: EmbeddingSource | None = None

    @property
    def open(self) -> bool:
        """True until everything needed has arrived, and then as long as the source is open."""
        return self._source is None or self._source.open

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Take a payload, or text, which is kept until all payloads have arrived.

        Raises:
            ProtocolViolation: nothing of this type is needed, or no more of it.
            CantataError: the request cannot be spoken.
        """
        if isinstance(item, Payload):
            self._take(item, final=final)
        elif self._source is None:
            self._text.append((item, final))
        else:
            self._source.feed(item, final=final)

    def prompt(self) -> TalkerPrompt | None:
        return None if self._source is None else self._source.prompt()

    def more(self) -> torch.Tensor | None:
        return None if self._source is None else self._source.more()

    def _take(self, payload: Payload, *, final: bool) -> None:
        kind: Any = type(payload)
        if kind not in self._missing:
            missing = sorted(needed.__name__ for needed in self._missing)
            raise ProtocolViolation(f"this request waits for {missing}, not {kind.__name__}")
        self._parts[kind].append(payload)
        if final:
            self._missing.discard(kind)
        if self._missing:
            return
        kinds: Any = self._parts
        self._source = self._begin([kind.join(kinds[kind]) for kind in kinds])
        while self._text:
            text, last = self._text.popleft()
            self._source.feed(text, final=last)
