"""Chooses the model that a session talks with, or that transcribes it, if a session can begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.realtime.cascade_responder import CascadeResponder
from cantata.api.realtime.model_responder import ModelResponder
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.responder import SessionResponder, TranscriptionOnlyResponder
from cantata.api.realtime.transcription_choice import find_transcription_model
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import Modality
from cantata.contract.data.errors import InvalidRequest, ModelNotFound
from cantata.contract.service import SpeechModel

_OPENAI_MODELS = "gpt-"
"""Prefixes of the models that OpenAI's clients name by default; they mean our default model."""
_UNUSED_RATE = 24_000
"""Hz of the sound that a session without answers does not send."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    name: str
    sample_rate: int
    """Hz of its speech."""
    check_room: Callable[[], None]
    """Raises Overloaded if nothing can begin."""
    make_responder: Callable[[ApiContext, OutputAudio], SessionResponder]
    answers: bool = True
    """False: the session only transcribes."""


def choose_model(context: ApiContext, name: str | None) -> ModelChoice:
    """Choose the model of a conversation by its name.

    Args:
        name: None, or one of OpenAI's: the first model that speaks texts or, if there is none, the
            first that takes sound.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound: none has that name.
        InvalidRequest: it takes no sound, and nothing speaks for it.
        NoTranscriptionModel: it hears only words, and nothing finds them.
    """
    context.lifecycle.check()
    name, service = context.resolve_alias(name), context.service
    audio_models = {n: m for n, m in service.chat_models.items() if Modality.AUDIO in m.takes}
    if is_default(name):
        if not service.models and audio_models:
            return _choose_audio_model(next(iter(audio_models.values())))
        model = context.get_model(None)
        return _choose_cascade(context, model.name, model, _find_default_thinker(context))
    assert name is not None
    if name in audio_models:
        return _choose_audio_model(audio_models[name])
    thinker = service.chat_models.get(name)
    speech_model = None if thinker is None else context.find_speech_model(thinker)
    if thinker is not None and speech_model is not None:
        return _choose_cascade(context, thinker.name, speech_model, thinker)
    valid = ", ".join([*service.models, *audio_models]) or "none"
    if name in service.chat_models:
        raise InvalidRequest(f"{name} takes no sound; models to talk with: {valid}", "model")
    try:
        model = service.get_model(name)
    except ModelNotFound:
        raise ModelNotFound(f"no model {name!r}; models to talk with: {valid}", "model") from None
    return _choose_cascade(context, model.name, model, _find_default_thinker(context))


def choose_for_transcription(context: ApiContext, name: str | None) -> ModelChoice:
    """Choose the model of a session that only transcribes.

    Args:
        name: of a model that transcribes; None, or one of OpenAI's: the first.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound: none has that name.
        NoTranscriptionModel: nothing transcribes.
    """
    context.lifecycle.check()
    model = find_transcription_model(context, name)
    if model is None:
        # The endpoint's own model is its operator's business.
        return _choose_transcription(name or "", lambda: None)
    return _choose_transcription(model.name, model.check_room)


def is_default(name: str | None) -> bool:
    """Whether a client leaves the choice to the server."""
    return name is None or name.startswith(_OPENAI_MODELS)


def check_same(context: ApiContext, name: str, sent: object) -> None:
    """Raises InvalidRequest if a session that already has a model is asked for another. `sent`: the
    field `model` of a `session.update`."""
    if not isinstance(sent, str) or is_default(sent):
        return
    try:
        same = choose_model(context, sent).name == name
    except InvalidRequest as error:
        raise type(error)(error.message, "session.model") from None
    if not same:
        raise InvalidRequest(
            f"the model of a session cannot be changed; this one has {name}. Connect again with "
            f"?model={sent}",
            "session.model",
        )


def _find_default_thinker(context: ApiContext) -> ChatModel | None:
    """What writes the answers that a model speaks, unless the operator named an endpoint."""
    return None if context.settings.realtime.chat is not None else context.find_thinker()


def _choose_cascade(
    context: ApiContext, name: str, model: SpeechModel, thinker: ChatModel | None
) -> ModelChoice:
    find_transcription_model(context, None)  # raises if nothing finds the words

    def check_room() -> None:
        model.check_room()
        if thinker is not None:
            thinker.check_room()

    make_responder = partial(CascadeResponder, name, model, thinker)
    return ModelChoice(name, model.sample_rate, check_room, make_responder)


def _choose_audio_model(model: ChatModel) -> ModelChoice:
    make_responder = partial(ModelResponder, model)
    return ModelChoice(model.name, model.sample_rate, model.check_room, make_responder)


def _choose_transcription(name: str, check_room: Callable[[], None]) -> ModelChoice:
    def make_responder(context: ApiContext, output_audio: OutputAudio) -> SessionResponder:
        return TranscriptionOnlyResponder(name)

    return ModelChoice(name, _UNUSED_RATE, check_room, make_responder, answers=False)


_INTENTS = (None, "", "conversation", "transcription")


async def choose_ready_model(
    context: ApiContext, name: str | None, intent: str | None, session: Mapping[str, Any]
) -> ModelChoice:
    """Choose the model of a session, and check that one can begin now.

    Args:
        name: of the model, as the client wrote it.
        intent: `transcription` for a session that only transcribes.
        session: settings with which it begins. A model of this server that they name comes before
            `name`.

    Raises:
        InvalidRequest: there is no such intent, or the settings' model is no string.
        CantataError: as of `choose_model` and `choose_for_transcription`, or nothing can begin.
    """
    if intent not in _INTENTS:
        raise InvalidRequest(f"intent {intent!r}: valid: transcription, conversation", "intent")
    named = session.get("model")
    if named is not None and not isinstance(named, str):
        raise InvalidRequest("session.model must be a string", "session.model")
    if name is None or not is_default(named):
        name = named
    listens = "transcription" in (intent, session.get("type"))
    choice = choose_for_transcription(context, name) if listens else choose_model(context, name)
    await context.cascade.prepare()
    choice.check_room()
    return choice
