"""A client's request for a picture in a conversation, checked against the model that is to draw
it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cantata.api.chat.body import ChatBody
from cantata.api.chat.conversation import check_messages, count_pictures
from cantata.api.context import ApiContext
from cantata.api.images.validation import (
    RANDOM_SEEDS,
    get_guidance,
    get_output,
    get_size,
    get_steps,
)
from cantata.contract.data.chat import ImagePart, Message, Modality, TextPart
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageRequest, Turn
from cantata.contract.image_service import ImageModel
from cantata.media.images import PictureOutput

_OF_MESSAGES = ("prompt", "image")
"""Fields of a picture's request that are messages here."""


@dataclass(frozen=True, slots=True)
class ValidatedPictureChat:
    """A checked request; its messages are still as the client wrote them."""

    model: ImageModel
    body: ChatBody
    size: tuple[int, int] | None
    steps: int | None
    guidance: float | None
    seed: int
    output: PictureOutput

    def request(self, messages: tuple[Message, ...], arrived_s: float) -> ImageRequest:
        """The request to the model, once the messages have been read.

        Args:
            arrived_s: when the request came, by the monotonic clock.

        Raises:
            InvalidRequest: the last message has no words.
        """
        options = self.body.image_config
        *earlier, prompt = build_turns(messages)
        width, height = self.size or (None, None)
        return ImageRequest(
            prompt.text,
            prompt.pictures,
            width,
            height,
            self.seed,
            options.negative_prompt,
            self.steps,
            self.guidance,
            deadline_s=None if options.deadline_s is None else arrived_s + options.deadline_s,
            batch=options.priority == "batch",
            options=options.own_options(self.model.limits.options),
            earlier=tuple(earlier),
        )


@dataclass(frozen=True, slots=True)
class _TurnReader:
    """A model that draws, as a reader of messages."""

    name: str
    takes: frozenset[Modality]
    calls_tools: bool = False


def wants_picture(context: ApiContext, body: ChatBody) -> bool:
    """Whether a request is for a picture: it says so, or its model makes nothing else."""
    if body.modalities is not None:
        return "image" in body.modalities
    name = context.resolve_alias(body.model)
    painter = context.service.image_models.get(name or "")
    answers = name in context.service.chat_models
    return painter is not None and painter.limits.conversations and not answers


def check_picture_body(context: ApiContext, body: ChatBody) -> ValidatedPictureChat:
    """The checked request.

    Raises:
        InvalidRequest: a model that does not exist, or does not draw what a conversation comes to;
            a part that it does not take, or an option outside what it takes.
        Overloaded: every slot is taken.
    """
    model = context.get_chat_image_model(body.model)
    if body.spoken:
        raise InvalidRequest(
            'modalities: an answer with a picture cannot be spoken; valid: ["text", "image"]',
            "modalities",
        )
    if body.offered:
        raise InvalidRequest(f"tools: {model.name} cannot call tools; valid: []", "tools")
    _check_neutral(model, body)
    if context.spare:
        spare = body.image_config.model_copy(update={"priority": "batch"})
        body = body.model_copy(update={"image_config": spare})
    limits, options = model.limits, body.image_config
    takes = {Modality.TEXT, *([Modality.IMAGE] if limits.max_references else [])}
    check_messages(body.messages, _TurnReader(model.name, frozenset(takes)), context.transcripts)
    _check_pictures(model, count_pictures(body.messages))
    with name_conversation_fields():
        validated = ValidatedPictureChat(
            model,
            body,
            get_size(options.size, limits),
            get_steps(options, limits),
            get_guidance(options, limits),
            secrets.randbelow(RANDOM_SEEDS) if body.seed is None else body.seed,
            get_output(options),
        )
    # Before files are loaded for nothing.
    model.check_room()
    return validated


def _check_neutral(model: ImageModel, body: ChatBody) -> None:
    """Options of texts are refused, unless they change nothing."""
    text = body.response_format is None or body.response_format.type == "text"
    wanted = {
        "n": body.n > 1,
        "response_format": not text,
        "logprobs": body.logprobs,
        "logit_bias": bool(body.logit_bias),
        "reasoning_effort": body.reasoning_effort not in (None, "none"),
    }
    for field, is_wanted in wanted.items():
        if is_wanted:
            message = f"{field}: pictures of {model.name} have none; leave it out"
            raise InvalidRequest(message, field)


@contextmanager
def name_conversation_fields() -> Iterator[None]:
    """Errors name fields as a conversation has them."""
    try:
        yield
    except InvalidRequest as error:
        # Subclasses are about something else than a field of the picture.
        if type(error) is not InvalidRequest or error.param is None:
            raise
        if error.param in _OF_MESSAGES or error.param.startswith("messages"):
            raise InvalidRequest(error.message, "messages") from None
        where = f"image_config.{error.param}"
        started = error.message.removeprefix(error.param)
        message = error.message if started == error.message else where + started
        raise InvalidRequest(message, where) from None


def _check_pictures(model: ImageModel, count: int) -> None:
    min_count, max_count = model.limits.min_references, model.limits.max_references
    if count < min_count:
        raise InvalidRequest(f"messages: {model.name} only edits pictures; send it one", "messages")
    if count > max_count:
        raise InvalidRequest(
            f"messages have {count} pictures; {model.name} takes up to {max_count}; leave out "
            "earlier ones",
            "messages",
        )


def build_turns(messages: Sequence[Message]) -> list[Turn]:
    """Texts with the pictures in front of each, in order; the prompt last.

    Pictures behind the last text belong to it: many clients send the words first.

    Raises:
        InvalidRequest: the last message has no words.
    """
    *earlier, last = messages
    turns = [turn for message in earlier for turn in _iterate_turns(message)]
    asked = list(_iterate_turns(last))
    behind = asked.pop() if asked and not asked[-1].text else None
    if not asked:
        where = f"messages[{len(earlier)}].content"
        raise InvalidRequest(f"{where} has no text; say which picture to draw", where)
    if behind is not None:
        prompt = asked[-1]
        asked[-1] = Turn(prompt.role, (*prompt.pictures, *behind.pictures), prompt.text)
    return [*turns, *asked]


def _iterate_turns(message: Message) -> Iterator[Turn]:
    """The turns of one message; only the last may have no text."""
    pictures: list[ImagePart] = []
    for part in message.parts:
        if isinstance(part, ImagePart):
            pictures.append(part)
        elif isinstance(part, TextPart) and part.text:
            yield Turn(message.role, tuple(one.pixels for one in pictures), part.text)
            pictures = []
    if pictures:
        yield Turn(message.role, tuple(one.pixels for one in pictures), "")
