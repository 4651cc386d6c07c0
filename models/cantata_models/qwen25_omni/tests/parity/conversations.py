"""The conversations that the reference and this implementation answer, all of them greedily."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.omni.messages import Part, PromptMessage, PromptRole, Text
from cantata_layers.omni.tests.media import film, picture, sound, video

SEED = 13
"""Of the tiny checkpoint."""
END_GAIN = 2.2
"""Of the row that scores the end of an answer: many end within a few steps."""
TALKER_POSITIONS = 150
"""Of an answer's speech and all before it, unless the prompt leaves too little."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One, and how it is answered."""

    name: str
    messages: tuple[PromptMessage, ...]
    speaker: str | None = "Chelsie"
    """None: the answer is not spoken."""
    max_tokens: int = 16
    """Of the answer."""

    def max_frames(self, prompt: int) -> int:
        """Of its speech, behind a prompt of so many tokens."""
        return max(24, TALKER_POSITIONS - prompt - 2)


def _user(*parts: Part | str) -> PromptMessage:
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return PromptMessage(PromptRole.USER, made)


def _said(role: PromptRole, text: str) -> PromptMessage:
    return PromptMessage(role, (Text(text),))


BRIEF = _said(PromptRole.SYSTEM, "You answer briefly.")
CONVERSATIONS: tuple[Conversation, ...] = (
    Conversation("text", (_user("Good morning! How are you?"),)),
    Conversation("system", (BRIEF, _user("Wie heißt du? 你叫什么？")), "Ethan"),  # noqa: RUF001
    Conversation("line_feeds", (_user("\n One\n\n two\n", " and three.\n"),)),
    Conversation("sound", (BRIEF, _user(sound(0.83, 1), "What is this?"))),
    Conversation("two_sounds", (_user(sound(0.31, 2), sound(2.513, 3), "Compare."),), "Ethan"),
    Conversation("picture", (BRIEF, _user("Look: ", picture(168, 140, 1), " Well?"))),
    Conversation(
        "two_pictures",
        (BRIEF, _user(picture(84, 56, 2), "and", picture(56, 112, 3), "differ, but how?")),
    ),
    Conversation("resized_picture", (_user(picture(50, 101, 4)),), "Ethan"),
    Conversation("video", (_user(video(3, 364, 280, 3.0, 5), "What happens?"),)),
    Conversation(
        "mixed",
        (
            BRIEF,
            _user(
                "First ", sound(0.7, 4), picture(56, 56, 6), "then", video(2, 280, 364, 1.0, 7), "?"
            ),
        ),
        "Ethan",
    ),
    Conversation(
        "two_turns",
        (
            _user(picture(56, 84, 8), "What colour?"),
            _said(PromptRole.ASSISTANT, "Many colours."),
            _user(sound(0.5, 5), "And this?"),
        ),
    ),
    Conversation("film", (_user("Look: ", film(4, 364, 280, 0.9, 2.63, 11), "and?"),)),
    Conversation("cut", (BRIEF, _user("Tell me a long story.")), max_tokens=4),
    Conversation("text_only", (_user("Good evening."),), None),
    Conversation("text_only_video", (_user(video(4, 364, 280, 1.7, 9)),), None),
)


def conversation_named(name: str) -> Conversation:
    return next(conversation for conversation in CONVERSATIONS if conversation.name == name)
