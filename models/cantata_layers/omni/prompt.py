"""A dialogue as a thinker's tokens.

Each turn is `<|im_start|>role`, a line feed, its parts, `<|im_end|>` and a line feed; the answer's
beginning follows. A medium is a start token, a token for each of its rows, and an end token; a
video with its sound has those of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.omni.inputs import Film, MediaFeatures, MediaModality, SoundFeatures
from cantata_layers.omni.messages import (
    PromptMessage,
    PromptPicture,
    PromptRole,
    PromptSound,
    Text,
    Video,
)
from cantata_layers.omni.positions import MediaPlacement, TimeScale, is_sound, place_positions
from cantata_layers.omni.preprocess import Preprocessor
from cantata_layers.omni.thinker_fields import MediaIds


@dataclass(frozen=True, slots=True)
class Prompt:
    tokens: NDArray[np.int32]
    """[P]"""
    placements: tuple[MediaPlacement, ...]
    """In order."""
    positions: NDArray[np.float32]
    """[3, P]"""

    @property
    def media(self) -> list[tuple[MediaFeatures, NDArray[np.int32]]]:
        """All that is encoded, in order, and where its rows belong."""
        return [part for placement in self.placements for part in placement.parts()]


@dataclass(frozen=True, slots=True)
class DialogueIds:
    im_start: int
    im_end: int
    media: MediaIds


class PromptLayout:
    """Lays out the dialogues of one checkpoint. `tokenizer`: of the checkpoint, as the next."""

    def __init__(
        self, tokenizer: Tokenizer, ids: DialogueIds, preprocessor: Preprocessor, time: TimeScale
    ) -> None:
        self._tokenizer, self._ids = tokenizer, ids
        self._preprocessor, self._time = preprocessor, time
        self.answer_begin = (ids.im_start, *self.encode(f"{PromptRole.ASSISTANT}\n"))
        """The tokens that begin an answer."""

    def build(self, messages: Sequence[PromptMessage]) -> Prompt:
        """Lay out a dialogue that the thinker shall answer.

        Raises:
            InvalidRequest: there is no message, or media in a turn that is not the user's.
            InvalidAudio: as `Preprocessor.features`.
        """
        if not messages:
            raise InvalidRequest("messages: at least one is needed", "messages")
        tokens: list[int] = []
        placements: list[MediaPlacement] = []
        features = iter(self._preprocessor.features(_collect_media(messages)))
        for message in messages:
            tokens.append(self._ids.im_start)
            for text, is_last in _iterate_texts(message):
                tokens += self.encode(text)
                if is_last:
                    continue
                media = next(features)
                before, rows, behind = self._list_tokens(media)
                placements.append(MediaPlacement(len(tokens) + len(before), media, self._time))
                tokens += [*before, *rows, *behind]
            tokens += [self._ids.im_end, *self.encode("\n")]
        tokens += self.answer_begin
        return Prompt(
            np.array(tokens, np.int32), tuple(placements), self.positions(len(tokens), placements)
        )

    def positions(self, count: int, placements: Sequence[MediaPlacement]) -> NDArray[np.float32]:
        """[3, count]: of tokens with media among them."""
        return place_positions(count, placements)

    def encode(self, text: str) -> list[int]:
        """Tokens, none of them special."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _list_tokens(self, media: MediaFeatures | Film) -> tuple[list[int], list[int], list[int]]:
        """The tokens before a medium's rows, those of its rows, and those after them."""
        ids = self._ids.media
        if isinstance(media, Film):
            rows = np.where(is_sound(media, self._time), ids.audio, ids.video).tolist()
            return [ids.vision_start, ids.audio_start], rows, [ids.audio_end, ids.vision_end]
        if isinstance(media, SoundFeatures):
            return [ids.audio_start], [ids.audio] * media.rows, [ids.audio_end]
        pad = ids.image if media.modality is MediaModality.IMAGE else ids.video
        return [ids.vision_start], [pad] * media.rows, [ids.vision_end]


def _collect_media(messages: Sequence[PromptMessage]) -> list[PromptSound | PromptPicture | Video]:
    """All that is not text, in order. Raises InvalidRequest: a turn that is not the user's has
    some."""
    media: list[PromptSound | PromptPicture | Video] = []
    for message in messages:
        own = [part for part in message.parts if not isinstance(part, Text)]
        if own and message.role is not PromptRole.USER:
            raise InvalidRequest(
                f"messages: a turn of role {message.role.value!r} may have text only", "messages"
            )
        media += own
    return media


def _iterate_texts(message: PromptMessage) -> Iterator[tuple[str, bool]]:
    """Yield the text in front of each medium, and the last text with True.

    WHY text in one piece: neighbouring parts, and the line feed, share tokens.
    """
    text = f"{message.role}\n"
    for part in message.parts:
        if isinstance(part, Text):
            text += part.text
            continue
        yield text, False
        text = ""
    yield text, True
