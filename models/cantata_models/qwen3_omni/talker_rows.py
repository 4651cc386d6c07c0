"""What the request builder gives the talker.

Letters: P tokens of the user's turns, M of them of media.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.data.errors import ProtocolViolation
from cantata.contract.data.request import SamplingOptions, StageInput
from cantata.contract.model.embedding_source import TalkerPrompt
from cantata_models.qwen3_omni.config import Qwen3OmniCodecIds, Qwen3OmniTextIds


@dataclass(frozen=True, slots=True)
class Qwen3OmniTalkerInput:
    """What the talker knows before the thinker answers."""

    user: NDArray[np.int32]
    """[P]: the tokens of the user's turns, in order."""
    media: NDArray[np.int32]
    """[M]: where in `user` sounds, pictures and videos are, ascending. Their rows come from the
    thinker: its hidden states behind `Qwen3OmniTalkerConfig.accept_layer` layers."""
    sources: NDArray[np.int32]
    """[M]: where these rows are in the thinker's prompt, ascending."""
    positions: NDArray[np.float32]
    """[3, P + 9]: rotary positions of the user's turns and of the answer's beginning."""
    role: tuple[int, int, int]
    """The tokens that begin the answer: `<|im_start|>`, assistant, line feed."""
    speaker: int
    """The voice's code."""
    max_frames: int | None
    """None: the checkpoint's default."""
    sampling: SamplingOptions


ANSWER_ROWS = 9
"""Rows of a prompt behind the user's turns."""


@dataclass(frozen=True, slots=True)
class RowTables:
    """What rows are made of."""

    text: torch.Tensor
    """[tokens, D]: every token's embedding, projected."""
    codec: torch.Tensor
    """[codes, D]: the embedding of code 0."""
    project_media: Callable[[torch.Tensor], torch.Tensor]
    """[M, E] hidden states -> [M, D]."""
    text_ids: Qwen3OmniTextIds
    codec_ids: Qwen3OmniCodecIds

    def prompt(self, inputs: Qwen3OmniTalkerInput, media: torch.Tensor, first: int) -> torch.Tensor:
        """[P + ANSWER_ROWS, D].

        Args:
            inputs: of the request.
            media: [M, E] float32.
            first: the first token of the answer.
        """
        user = self.of_text(inputs.user.tolist())
        if len(media):
            places = torch.from_numpy(inputs.media.astype(np.int64)).to(user.device)
            user[places] = self.project_media(media.to(user)).to(user)
        ids, codec = self.text_ids, self.codec_ids
        text = [*inputs.role, *[ids.tts_pad] * 4, ids.tts_bos, first]
        codes = [codec.nothink, codec.think_bos, codec.think_eos, inputs.speaker, codec.pad]
        answer = self.of_text(text)
        answer[len(inputs.role) :] += self.codec[self._to_index([*codes, codec.bos])]
        return torch.cat((user, answer))

    def of_text(self, ids: Sequence[int]) -> torch.Tensor:
        """[len(ids), D], a new tensor."""
        return self.text[self._to_index(ids)]

    def _to_index(self, ids: Sequence[int]) -> torch.Tensor:
        return torch.tensor(ids, dtype=torch.int64, device=self.text.device)


class Qwen3OmniAnswerRows:
    """Implements `EmbeddingSource` for an answer that the thinker is still giving.

    It takes the answer's tokens as `Codes` [T, 1] and, if the user's turns have media, the
    thinker's rows from the first on, of which it keeps those of media. It begins with the first
    token. The answer's last token may be the end token or, where the answer was cut, any other.

    Args:
        inputs: of the request.
        tables: what rows are made of.
        max_frames: the request's limit.
    """

    def __init__(self, inputs: Qwen3OmniTalkerInput, tables: RowTables, max_frames: int) -> None:
        self._inputs, self._tables, self._max_frames = inputs, tables, max_frames
        self._media: list[NDArray[np.float32]] = []
        self._seen = 0
        """Rows of the thinker that have come."""
        self._answer: list[int] = []
        self._complete = False
        """Nothing of the answer follows."""
        self._given: int | None = None
        """Answer rows that the talker has; one more when it has the end. None: no prompt yet."""

    @property
    def open(self) -> bool:
        """Until the answer ends."""
        return not self._complete or not self._has_media

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Take tokens of the answer, or rows of media.

        Raises:
            ProtocolViolation: the thinker's rows end too early, or something else has come.
        """
        if isinstance(item, Codes):
            self._take_tokens(item, final=final)
        elif isinstance(item, Rows) and len(self._inputs.sources):
            self._take_media(item.values, final=final)
        else:
            raise ProtocolViolation(f"this request takes no {type(item).__name__}")

    def prompt(self) -> TalkerPrompt | None:
        """The user's turns and the beginning of the answer, once its first token is there. An
        answer without a token is not spoken."""
        if self._complete and not self._answer:
            return TalkerPrompt(self._tables.text[:0], prompt_len=0, max_frames=0)
        if not self._answer or not self._has_media:
            return None
        media = torch.from_numpy(np.concatenate(self._media or [np.zeros((0, 0), np.float32)]))
        rows = self._tables.prompt(self._inputs, media, self._answer[0])
        self._given = 1
        return TalkerPrompt(
            rows=rows,
            prompt_len=len(rows),
            max_frames=self._max_frames,
            sampling=self._inputs.sampling,
            positions=torch.from_numpy(self._inputs.positions),
        )

    def more(self) -> torch.Tensor | None:
        """The rows of tokens that have come since, and of the end."""
        if self._given is None:
            return None
        ids, given = self._tables.text_ids, self._given
        tokens = self._answer[given:]
        if self._complete and given <= len(self._answer):
            self._given = len(self._answer) + 1
            tokens += [ids.tts_eos, ids.tts_pad]
        else:
            self._given = max(given, len(self._answer))
        return self._tables.of_text(tokens) if tokens else None

    def _take_tokens(self, tokens: Codes, *, final: bool) -> None:
        if self._complete and len(tokens.values):
            raise ProtocolViolation("the answer of this request is complete")
        for token in tokens.values[:, 0].tolist():
            if token == self._tables.text_ids.im_end:
                final = True
                break
            self._answer.append(token)
        self._complete = self._complete or final

    def _take_media(self, rows: NDArray[np.float32], *, final: bool) -> None:
        sources = self._inputs.sources
        here = sources[(sources >= self._seen) & (sources < self._seen + len(rows))]
        self._media.append(rows[here - self._seen])
        self._seen += len(rows)
        if final and not self._has_media:
            raise ProtocolViolation(
                f"the thinker has sent {self._seen} rows; row {sources[-1]} is one of media"
            )

    @property
    def _has_media(self) -> bool:
        """Whether all rows of media have come."""
        sources = self._inputs.sources
        return not len(sources) or self._seen > sources[-1]
