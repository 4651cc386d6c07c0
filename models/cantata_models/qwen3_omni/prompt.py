"""A dialogue as the thinker's tokens, and what the talker hears of it.

Each turn is `<|im_start|>role`, a line feed, its parts, `<|im_end|>` and a line feed; the answer's
beginning follows. A medium is a start token, a token for each of its rows, and an end token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_omni.config.checkpoint import OmniConfig
from cantata_models.qwen3_omni.features import MediaFeatures, Modality, SoundFeatures
from cantata_models.qwen3_omni.messages import Message, Picture, Role, Sound, Text, Video
from cantata_models.qwen3_omni.positions import Placement, positions_of
from cantata_models.qwen3_omni.preprocess import Preprocessor
from cantata_models.qwen3_omni.talker_rows import ANSWER_ROWS


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens with media among them."""

    tokens: NDArray[np.int32]
    """[P]"""
    placements: tuple[Placement, ...]
    """In order."""
    positions: NDArray[np.float32]
    """[3, P]"""


@dataclass(frozen=True, slots=True)
class HeardPrompt:
    """The user's turns, as the talker hears them."""

    tokens: NDArray[np.int32]
    """[P]"""
    media: NDArray[np.int32]
    """[M]: where in `tokens` rows of media are."""
    sources: NDArray[np.int32]
    """[M]: where these rows are in the thinker's prompt."""
    positions: NDArray[np.float32]
    """[3, P + `ANSWER_ROWS`]: with the beginning of the answer."""


class PromptBuilder:
    """Builds the prompts of one checkpoint.

    Args:
        checkpoint: its folder.
        config: of the checkpoint, as the next.
        preprocessor: makes features.

    Raises:
        ConfigError: the tokenizer is missing, damaged, or another checkpoint's.
    """

    def __init__(self, checkpoint: Path, config: OmniConfig, preprocessor: Preprocessor) -> None:
        self._config, self._preprocessor = config, preprocessor
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        for role, token in config.text.roles.items():
            found = self._encode(f"{role}\n")
            if len(found) != 2 or found[0] != token:
                raise ConfigError(
                    f"{checkpoint}: {role!r} and a line feed must be token {token} and another one "
                    f"for the tokenizer, not {found}"
                )
        assistant, line_feed = self._encode(f"{Role.ASSISTANT}\n")
        self.role = (config.text.im_start, assistant, line_feed)
        """The tokens that begin an answer."""

    def build(self, messages: Sequence[Message]) -> Prompt:
        """Lay out a dialogue that the thinker shall answer.

        Raises:
            InvalidRequest: there is no message, or media in a turn that is not the user's.
            InvalidAudio: as `Preprocessor.features`.
        """
        if not messages:
            raise InvalidRequest("messages: at least one is needed", "messages")
        tokens: list[int] = []
        placements: list[Placement] = []
        features = iter(self._preprocessor.features(_media_of(messages)))
        for message in messages:
            tokens.append(self._config.text.im_start)
            for text, is_last in _stretches(message):
                tokens += self._encode(text)
                if is_last:
                    continue
                media = next(features)
                pad, start, end = self._marks(media)
                placements.append(Placement(len(tokens) + 1, media))
                tokens += [start, *[pad] * media.rows, end]
            tokens += [self._config.text.im_end, *self._encode("\n")]
        tokens += self.role
        return Prompt(
            np.array(tokens, np.int32), tuple(placements), self._positions(len(tokens), placements)
        )

    def heard(self, prompt: Prompt) -> HeardPrompt:
        """Return what the talker hears of a prompt."""
        ids = self._config.text
        starts = np.flatnonzero(prompt.tokens == ids.im_start)
        roles = prompt.tokens[np.minimum(starts + 1, len(prompt.tokens) - 1)]
        turns = np.repeat(roles, np.diff([*starts, len(prompt.tokens)]))
        places = np.flatnonzero(turns == ids.user)
        tokens = prompt.tokens[places]
        is_media = np.isin(tokens, list(self._config.thinker.media.pads))
        placements = [
            Placement(int(np.searchsorted(places, placement.offset)), placement.media)
            for placement in prompt.placements
        ]
        return HeardPrompt(
            tokens=tokens,
            media=np.flatnonzero(is_media).astype(np.int32),
            sources=places[is_media].astype(np.int32),
            positions=self._positions(len(tokens) + ANSWER_ROWS, placements),
        )

    def _marks(self, media: MediaFeatures) -> tuple[int, int, int]:
        """The repeated token, and those around it."""
        ids = self._config.thinker.media
        if isinstance(media, SoundFeatures):
            return ids.audio, ids.audio_start, ids.audio_end
        pad = ids.image if media.modality is Modality.IMAGE else ids.video
        return pad, ids.vision_start, ids.vision_end

    def _positions(self, count: int, placements: Sequence[Placement]) -> NDArray[np.float32]:
        return positions_of(count, placements, self._config.thinker.positions_per_second)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _media_of(messages: Sequence[Message]) -> list[Sound | Picture | Video]:
    """All that is not text, in order.

    Raises:
        InvalidRequest: a turn that is not the user's has some.
    """
    media: list[Sound | Picture | Video] = []
    for message in messages:
        own = [part for part in message.parts if not isinstance(part, Text)]
        if own and message.role is not Role.USER:
            raise InvalidRequest(
                f"messages: a turn of role {message.role.value!r} may have text only", "messages"
            )
        media += own
    return media


def _stretches(message: Message) -> Iterator[tuple[str, bool]]:
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
