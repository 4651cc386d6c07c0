"""The talker's input rows: the user's turns, the beginning of the answer, then a row for each of
its tokens, added to the frames one by one.

    user's turns   | role | tts_pad x 4, tts_bos                 | first token
    text or media  | text | no thinking, speaker, codec_pad      | codec_bos

The thinker's system prompt and earlier answers are not heard. In the place of the answer's end is
tts_eos; tts_pad follows as long as there are frames.

Letters: P tokens of the user's turns, M of them of media, D the talker's width, E the thinker's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.data.errors import ProtocolViolation, RequestFailed
from cantata.contract.data.request import StageInput
from cantata.contract.model.row_source import TalkerPrompt
from cantata_models.qwen3_omni.config.checkpoint import TextIds
from cantata_models.qwen3_omni.config.talker import CodecIds
from cantata_models.qwen3_omni.inputs import TalkerInput

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
    text_ids: TextIds
    codec_ids: CodecIds

    def prompt(self, inputs: TalkerInput, media: torch.Tensor, first: int) -> torch.Tensor:
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
        answer[len(inputs.role) :] += self.codec[self._index([*codes, codec.bos])]
        return torch.cat((user, answer))

    def of_text(self, ids: Sequence[int]) -> torch.Tensor:
        """[len(ids), D], a new tensor."""
        return self.text[self._index(ids)]

    def _index(self, ids: Sequence[int]) -> torch.Tensor:
        return torch.tensor(ids, dtype=torch.int64, device=self.text.device)


class AnswerRows:
    """Implements `RowSource` for an answer that the thinker is still giving.

    It takes the answer's tokens as `Codes` [T, 1] and, if the user's turns have media, their `Rows`
    [M, E] in any number of parts. It begins with the first token. The answer's last token may be
    the end token or, where the answer was cut, any other.

    Args:
        inputs: of the request.
        tables: what rows are made of.
        max_frames: the request's limit.
    """

    def __init__(self, inputs: TalkerInput, tables: RowTables, max_frames: int) -> None:
        self._inputs, self._tables, self._max_frames = inputs, tables, max_frames
        self._media: list[Rows] = []
        self._media_open = len(inputs.media) > 0
        self._answer: list[int] = []
        self._complete = False
        """Nothing of the answer follows."""
        self._given: int | None = None
        """Answer rows that the talker has; one more when it has the end. None: no prompt yet."""

    @property
    def open(self) -> bool:
        """Until the answer ends."""
        return not self._complete or self._media_open

    def feed(self, item: StageInput | Payload, *, final: bool) -> None:
        """Take tokens of the answer, or rows of media.

        Raises:
            ProtocolViolation: more than was announced, or something else.
        """
        if isinstance(item, Codes):
            self._take_tokens(item, final=final)
        elif isinstance(item, Rows) and self._media_open:
            self._take_media(item, final=final)
        else:
            raise ProtocolViolation(f"this request takes no {type(item).__name__}")

    def prompt(self) -> TalkerPrompt | None:
        """The user's turns and the beginning of the answer, once its first token is there.

        Raises:
            RequestFailed: the answer is empty.
        """
        if self._complete and not self._answer:
            raise RequestFailed("the answer has no words to speak")
        if not self._answer or self._media_open:
            return None
        width = 0
        values = [part.values for part in self._media] or [np.zeros((0, width), np.float32)]
        media = torch.from_numpy(np.concatenate(values))
        rows = self._tables.prompt(self._inputs, media, self._answer[0])
        self._given = 1
        return TalkerPrompt(
            rows=rows,
            prompt_len=len(rows),
            max_frames=self._max_frames,
            sampling=self._inputs.sampling,
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

    def _take_media(self, rows: Rows, *, final: bool) -> None:
        self._media.append(rows)
        self._media_open = not final
        found, wanted = sum(len(part.values) for part in self._media), len(self._inputs.media)
        if found > wanted or (final and found < wanted):
            raise ProtocolViolation(f"{found} rows of media have come, {wanted} were announced")
