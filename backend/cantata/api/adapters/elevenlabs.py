"""ElevenLabs' text to speech over HTTP, and its list of voices."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from cantata.api.adapters import elevenlabs_dictionaries
from cantata.api.adapters.elevenlabs_messages import (
    AudioWithTimestamps,
    CharacterClock,
    ElevenLabsErrorBody,
    ElevenLabsErrorDetail,
    ElevenLabsVoice,
    ElevenLabsVoices,
    SynthesisBody,
    SynthesisFileQuery,
    SynthesisQuery,
    TimedCharacter,
    build_http_alignment,
)
from cantata.api.adapters.voices import ModelVoice, resolve_model, resolve_model_voice
from cantata.api.context import ApiContext, Context
from cantata.api.errors import HttpError
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import describe_bytes, describe_errors, describe_sound
from cantata.api.speech.framing import AudioFraming, Framing
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.speech.voice_choice import choose_lexicons
from cantata.api.speech.whole import WholeSpeech, WrappedSpeech
from cantata.audio.telephone_formats import ALL_FORMATS
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.request import Voice, check_text_length
from cantata.contract.service import SpokenWord

PREFIX = "/v1/text-to-speech"
PREFIXES = (PREFIX, "/v1/voices", "/v2/voices", elevenlabs_dictionaries.PREFIX)

router = APIRouter(
    tags=["elevenlabs"], route_class=CheckedRoute, responses=describe_errors(ElevenLabsErrorBody)
)

_FOREIGN_MODELS = re.compile(r"eleven_\w+", re.ASCII)
_FOREIGN_VOICES = re.compile(r"[A-Za-z0-9]{20}")

_SOUND = describe_sound(ALL_FORMATS)
Options = Annotated[SynthesisFileQuery, Query()]


@router.post(PREFIX + "/{voice_id}", response_class=Response, responses=_SOUND)
@router.post(PREFIX + "/{voice_id}/stream", response_class=Response, responses=_SOUND)
async def synthesize(
    voice_id: str, body: SynthesisBody, options: Options, context: Context
) -> Response:
    """Speak one text; both routes send the sound while it is made. See docs/protocol.md."""
    validated = await _validate_synthesis(context, voice_id, body, options)
    if options.sign:
        context.check_signable(validated.output)
        return WholeSpeech(context, validated, verify=False)
    return _respond(context, validated, AudioFraming(validated.output.audio_format))


@router.post(
    PREFIX + "/{voice_id}/stream/with-timestamps",
    response_class=Response,
    responses=describe_bytes("application/x-ndjson"),
)
async def stream_with_timestamps(
    voice_id: str, body: SynthesisBody, options: Options, context: Context
) -> Response:
    """Speak one text; a line of JSON for each piece of sound, and for each word's times."""
    if options.sign:
        raise InvalidRequest("sign needs a whole file, and this route sends pieces of one", "sign")
    validated = await _validate_synthesis(context, voice_id, body, options)
    return _respond(context, validated, _LineFraming(body.text))


@router.post(
    PREFIX + "/{voice_id}/with-timestamps",
    response_class=Response,
    responses={200: {"model": AudioWithTimestamps}},
)
async def with_timestamps(
    voice_id: str, body: SynthesisBody, options: Options, context: Context
) -> Response:
    """Speak one text; all of its sound and times in one JSON object."""
    validated = await _validate_synthesis(context, voice_id, body, options)
    if options.sign:
        context.check_signable(validated.output)
    return WrappedSpeech(context, validated, _WholeFraming(body.text))


@router.get("/v1/voices")
@router.get("/v2/voices")
async def elevenlabs_voices(context: Context) -> ElevenLabsVoices:
    """Every voice of every served model."""
    voices = _list_voices(context)
    return ElevenLabsVoices(voices=voices, total_count=len(voices))


@router.get("/v1/voices/{voice_id}")
async def elevenlabs_voice(voice_id: str, context: Context) -> ElevenLabsVoice:
    """Describe one voice; a name of ElevenLabs' cloud selects the default voice."""
    model_voice = await find_model_voice(context, None, voice_id)
    own = model_voice.model.get_voice(model_voice.voice.voice)
    return _describe(own)


async def find_model_voice(context: ApiContext, model_id: str | None, voice_id: str) -> ModelVoice:
    """Voice and model; those of ElevenLabs' cloud select the defaults. Raises NotReady: no model is
    served yet. ModelNotFound, VoiceNotFound: neither ours nor of their form."""
    model = resolve_model(context, model_id, _FOREIGN_MODELS)
    return await resolve_model_voice(context, model, voice_id, _FOREIGN_VOICES)


def build_error_body(error: HttpError, request_id: str) -> dict[str, object]:
    """An error over HTTP in ElevenLabs' format."""
    detail = ElevenLabsErrorDetail(
        status=error.detail.code or error.detail.type, message=error.detail.message
    )
    return ElevenLabsErrorBody(detail=detail).model_dump()


async def _validate_synthesis(
    context: ApiContext, voice_id: str, body: SynthesisBody, options: SynthesisQuery
) -> ValidatedRequest:
    model_voice = await find_model_voice(context, body.model_id, voice_id)
    check_text_length(len(body.text), model_voice.model.max_input_characters)
    speed = body.voice_settings.speed if body.voice_settings else None
    names = [one.pronunciation_dictionary_id for one in body.pronunciation_dictionary_locators]
    entries = choose_lexicons(context, names, model_voice.voice.id)
    request = model_voice.request(body.text, speed or 1.0, body.seed, entries)
    model = model_voice.model
    return ValidatedRequest(model, request, context.mark(options.output(model), model.name))


def _respond(context: ApiContext, validated: ValidatedRequest, framing: Framing) -> Response:
    return SpeechResponse(validated, framing, context.metrics, context.settings.stall_timeout_s)


def _list_voices(context: ApiContext) -> list[ElevenLabsVoice]:
    context.lifecycle.check()
    served = context.service.models.values()
    return [_describe(voice) for model in served for voice in model.voices]


def _describe(voice: Voice) -> ElevenLabsVoice:
    return ElevenLabsVoice(voice_id=voice.id, name=voice.name, description=voice.description)


class _LineFraming(Framing):
    """A JSON object on each line."""

    media_type = "application/x-ndjson"

    def __init__(self, text: str) -> None:
        self._clock = CharacterClock(text)

    def frame_audio(self, data: bytes) -> bytes:
        return _encode_line(data, []) if data else b""

    def frame_words(self, words: Sequence[SpokenWord]) -> bytes:
        timed = time_characters(self._clock, words)
        return _encode_line(b"", timed) if timed else b""

    def end(self, duration_s: float) -> bytes:
        rest = self._clock.take_rest(duration_s)
        return _encode_line(b"", rest) if rest else b""

    def frame_error(self, error: CantataError) -> bytes | None:
        return None


class _WholeFraming(Framing):
    """One JSON object, sent once the sound is complete."""

    media_type = "application/json"

    def __init__(self, text: str) -> None:
        self._clock = CharacterClock(text)
        self._sound = bytearray()
        self._timed: list[TimedCharacter] = []

    def frame_audio(self, data: bytes) -> bytes:
        self._sound += data
        return b""

    def frame_words(self, words: Sequence[SpokenWord]) -> bytes:
        self._timed += time_characters(self._clock, words)
        return b""

    def end(self, duration_s: float) -> bytes:
        # The space that `take_rest` adds stands for an utterance that follows.
        return _encode_line(
            bytes(self._sound), [*self._timed, *self._clock.take_rest(duration_s)][:-1]
        )

    def frame_error(self, error: CantataError) -> bytes | None:
        return None


def time_characters(clock: CharacterClock, words: Sequence[SpokenWord]) -> list[TimedCharacter]:
    """Characters up to the last of these words."""
    return clock.take_until((one.text_start, one.text_end, one.start_s, one.end_s) for one in words)


def _encode_line(data: bytes, characters: Sequence[TimedCharacter]) -> bytes:
    alignment = build_http_alignment(characters) if characters else None
    line = AudioWithTimestamps(
        audio_base64=base64.b64encode(data).decode("ascii"),
        alignment=alignment,
        normalized_alignment=alignment,
    )
    return line.model_dump_json().encode() + b"\n"
