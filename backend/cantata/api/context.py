"""What every route needs, made once per app and injected."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from cantata.api.access.client_secrets import ClientSecrets
from cantata.api.chat.transcripts import Transcripts
from cantata.api.realtime.calls.open_calls import OpenCalls
from cantata.api.realtime.resuming.resumable_sessions import ResumableSessions
from cantata.api.responses.store import ResponseStore
from cantata.api.server.drain import Drain
from cantata.api.server.lifecycle import ServiceLifecycle
from cantata.api.settings import ServerSettings
from cantata.audio.formats import FORMATS, OutputFormat
from cantata.contract.catalogue import IMAGE_MODEL_ALIASES
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import Modality
from cantata.contract.data.errors import InvalidRequest, ModelNotFound, VoiceNotFound
from cantata.contract.image_service import ImageModel
from cantata.contract.service import SpeechModel
from cantata.contract.transcription_service import TranscriptionModel, TranscriptionService
from cantata.documents.reader import DocumentReader
from cantata.jobs.store import JobStore
from cantata.lexicons.store import LexiconStore
from cantata.media.provenance import make_sound_tags
from cantata.media.request_media import MediaReader
from cantata.media.signing import FileSigner
from cantata.metrics import Metrics
from cantata.references.consent import Statements
from cantata.references.decoding import ReferenceReader
from cantata.references.stored import Voices
from cantata.speech_input.cascade import Cascade
from cantata.speech_input.recordings import RecordingReader


@dataclass(frozen=True, slots=True)
class ApiContext:
    """The objects that the routes of one app share."""

    service: TranscriptionService
    settings: ServerSettings
    lifecycle: ServiceLifecycle
    metrics: Metrics
    references: ReferenceReader
    voices: Voices | None
    """Uploaded voices; None: uploads are not accepted."""
    statements: Statements
    """Consents that are to be spoken."""
    lexicons: LexiconStore | None
    """Pronunciation lexicons; None: none are kept."""
    media: MediaReader
    signer: FileSigner | None
    """Signs files that are whole; None: they have tags at most."""
    cascade: Cascade
    """Models and processes that all spoken conversations share."""
    jobs: JobStore | None = None
    """Kept jobs; None: none are taken."""
    documents: DocumentReader = field(default_factory=DocumentReader)
    recordings: RecordingReader = field(default_factory=RecordingReader)
    transcripts: Transcripts = field(default_factory=Transcripts)
    responses: ResponseStore = field(default_factory=ResponseStore)
    """Answers to POST /v1/responses."""
    created: int = field(default_factory=lambda: int(time.time()))
    started_at: float = field(default_factory=time.monotonic)
    """When the app was created, by a clock that never jumps."""
    drain: Drain = field(default_factory=Drain)
    client_secrets: ClientSecrets = field(default_factory=ClientSecrets)
    """Keys of browsers, for sessions of the Realtime API."""
    calls: OpenCalls = field(default_factory=OpenCalls)
    """Sessions over WebRTC."""
    resumable: ResumableSessions = field(default_factory=ResumableSessions)
    """Sessions over WebSockets that outlive them."""
    spare: bool = False
    """Requests use only what live ones leave: nobody waits for them."""

    def get_model(self, name: str | None) -> SpeechModel:
        """The model of this name, None the default.

        Raises:
            NotReady: no model is served yet.
            ModelNotFound: none has that name.
        """
        self.lifecycle.check()
        name = self.resolve_alias(name)
        return self.service.get_model(self.service.default_model if name is None else name)

    def mark(self, output: OutputFormat, model: str) -> OutputFormat:
        """The format of a file of speech, with tags that say who made it, if this server writes
        such."""
        marked = self.settings.provenance != "off"
        return replace(output, tags=make_sound_tags(model)) if marked else output

    def check_signable(self, output: OutputFormat) -> None:
        """Reject a signature that this server, or the format, cannot have. Raises InvalidRequest:
        says which, and what can be."""
        if self.signer is None:
            raise InvalidRequest(
                "this server does not sign files; its operator has to set --provenance signed",
                "sign",
            )
        if not self.signer.takes(output.audio_format.media_type):
            takes = self.signer.takes
            valid = ", ".join(one.name for one in FORMATS.values() if takes(one.media_type))
            raise InvalidRequest(
                f"a file in {output.audio_format.name!r} cannot be signed; valid: {valid}",
                "response_format",
            )

    def get_chat_model(self, name: str | None) -> ChatModel:
        """The model of this name that answers messages, None the first. Raises as `get_model`."""
        self.lifecycle.check()
        return self.service.get_chat_model(self.resolve_alias(name))

    def find_speech_model(self, thinker: ChatModel, voice: str | None = None) -> SpeechModel | None:
        """The model that speaks the answers of one that only writes.

        Args:
            voice: that is asked for: another model speaks if that one alone has it.

        Returns:
            None: there is none, or the thinker speaks for itself, or takes more than texts and no
            deployment says who speaks for it.
        """
        models, chosen = self.service.models, thinker.spoken_by
        if thinker.voices or (chosen is None and thinker.takes != {Modality.TEXT}):
            return None
        usual = models.get(self.service.default_model if chosen is None else chosen)
        if usual is None or voice is None or has_voice(usual, voice):
            return usual
        return next((one for one in models.values() if has_voice(one, voice)), usual)

    def find_thinker(self) -> ChatModel | None:
        """The first model that writes what others speak; None: there is none."""
        models = self.service.chat_models.values()
        return next((one for one in models if self.find_speech_model(one) is not None), None)

    def get_image_model(self, name: str | None, *, edits: bool) -> ImageModel:
        """The model of this name that draws. Raises as `get_model`. None, and OpenAI's names, mean
        the first that does what is asked: edit pictures, or make them from words alone."""
        self.lifecycle.check()
        name = self.resolve_alias(name)
        model, models = self.service.get_image_model(name), self.service.image_models
        if name in models:
            return model
        able = (one for one in models.values() if _does(one, edits=edits))
        return next(able, model)

    def get_transcription_model(self, name: str | None) -> TranscriptionModel:
        """The model of this name that transcribes; None, and OpenAI's names, mean the first. Raises
        as `get_model`."""
        self.lifecycle.check()
        return self.service.get_transcription_model(self.resolve_alias(name))

    def get_chat_image_model(self, name: str | None) -> ImageModel:
        """The model of this name that draws what a conversation comes to; None, and OpenAI's names,
        mean the first.

        Raises:
            NotReady: no model is served yet.
            ModelNotFound: none has that name.
            InvalidRequest: the one that has it does not draw there.
        """
        self.lifecycle.check()
        name = self.resolve_alias(name)
        named = self.service.image_models.get(name or "")
        able = [one for one in self.service.image_models.values() if one.limits.conversations]
        if named is not None and named.limits.conversations:
            return named
        served = ", ".join(one.name for one in able) or "none"
        if named is not None or name in self.service.chat_models:
            raise InvalidRequest(
                f"modalities: {name} draws no pictures in conversations; models that do: {served}",
                "modalities",
            )
        if able and (name is None or name.startswith(IMAGE_MODEL_ALIASES)):
            return able[0]
        asked = "no model" if name is None else f"no model {name!r}"
        raise ModelNotFound(f"{asked} that draws in conversations; served: {served}", "model")

    def resolve_alias(self, name: str | None) -> str | None:
        """The model that an operator's own name means (`--alias`); other names are their own."""
        return self.settings.model_aliases.get(name, name) if name is not None else None


def has_voice(model: SpeechModel, voice: str | None) -> bool:
    try:
        model.get_voice(voice)
    except VoiceNotFound:
        return False
    return True


def _does(model: ImageModel, *, edits: bool) -> bool:
    limits = model.limits
    return limits.max_references > 0 if edits else limits.min_references == 0


def _get_context(connection: HTTPConnection) -> ApiContext:
    context = connection.app.state.context
    assert isinstance(context, ApiContext)
    return context


Context = Annotated[ApiContext, Depends(_get_context)]
