"""Chooses the model that a session talks with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cantata.api.context import ApiContext
from cantata.api.realtime.cascade_responder import CascadeResponder
from cantata.api.realtime.model_responder import ModelResponder
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.responder import SessionResponder
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import Modality
from cantata.contract.data.errors import InvalidRequest, ModelNotFound
from cantata.contract.service import ServedModel

_OPENAI_MODELS = "gpt-"
"""Prefixes of the models that OpenAI's clients name by default; they mean our default model."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that a session can be held with."""

    model: ServedModel | ChatModel
    hears: bool
    """The model hears sound itself and needs no transcription."""
    meet: Callable[[ApiContext, OutputAudio], SessionResponder]
    """Makes the session's partner."""


def choose(context: ApiContext, name: str | None) -> ModelChoice:
    """The choice for a model's name.

    Args:
        context: the app's parts.
        name: None, or one of OpenAI's: the first model that speaks texts or, if there is none, the
            first that takes sound.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound: none has that name.
        InvalidRequest: it takes no sound.
    """
    context.lifecycle.check()
    name, service = context.real_name(name), context.service
    hearing = {n: m for n, m in service.chat_models.items() if Modality.AUDIO in m.takes}
    if is_default(name):
        if not service.models and hearing:
            return _hearing(next(iter(hearing.values())))
        return _speaking(context.model(None))
    assert name is not None
    if name in hearing:
        return _hearing(hearing[name])
    valid = ", ".join([*service.models, *hearing]) or "none"
    if name in service.chat_models:
        raise InvalidRequest(f"{name} takes no sound; models to talk with: {valid}", "model")
    try:
        return _speaking(service.model(name))
    except ModelNotFound:
        raise ModelNotFound(f"no model {name!r}; models to talk with: {valid}", "model") from None


def is_default(name: str | None) -> bool:
    """Whether a client leaves the choice to the server."""
    return name is None or name.startswith(_OPENAI_MODELS)


def check_same(context: ApiContext, name: str, sent: object) -> None:
    """Raises InvalidRequest if a session that already has a model is asked for another.

    Args:
        context: the app's parts.
        name: of the session's model.
        sent: the field `model` of a `session.update`.
    """
    if not isinstance(sent, str) or is_default(sent):
        return
    try:
        same = choose(context, sent).model.name == name
    except InvalidRequest as error:
        raise type(error)(error.message, "session.model") from None
    if not same:
        raise InvalidRequest(
            f"the model of a session cannot be changed; this one has {name}. Connect again with "
            f"?model={sent}",
            "session.model",
        )


def _speaking(model: ServedModel) -> ModelChoice:
    return ModelChoice(model, hears=False, meet=partial(CascadeResponder, model))


def _hearing(model: ChatModel) -> ModelChoice:
    return ModelChoice(model, hears=True, meet=partial(ModelResponder, model))
