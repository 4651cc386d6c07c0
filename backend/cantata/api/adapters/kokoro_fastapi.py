"""Kokoro-FastAPI's routes: sound in base64 with the times of its words, phones, mixtures of voices.

Its other routes that clients call are OpenAI's. What has no meaning here is ignored: `lang_code`,
`volume_multiplier`, `normalization_options`, download links.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field
from starlette.responses import Response

from cantata.api.adapters.voices import ModelVoice, resolve_model, resolve_model_voice
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, describe_bytes, describe_sound
from cantata.api.schemas import Name, ResponseFormat, Seed, Speed, Text, WireModel
from cantata.api.speech.framing import AudioFraming, Framing
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.speech.whole import WholeSpeech, WrappedSpeech
from cantata.audio.formats import FORMATS, output_format
from cantata.contract.data.errors import CantataError, Forbidden, InvalidRequest, VoiceNotFound
from cantata.contract.data.request import check_text_length
from cantata.contract.service import SpeechModel, SpokenWord

router = APIRouter(tags=["kokoro-fastapi"], route_class=CheckedRoute, responses=ERRORS)

_FOREIGN_MODELS = re.compile(r"kokoro[\w.-]*", re.ASCII)
_FOREIGN_VOICES = re.compile(r"[a-z](?P<gender>[fm])_\w+(\([\d.]+\))?([+-].*)?", re.ASCII)
"""A voice of that server's own, or a mixture that begins with one."""
_LINES = "application/x-ndjson"
_GENDERS = {"f": "female", "m": "male"}


class CaptionedBody(WireModel):
    """POST /dev/captioned_speech."""

    input: Text
    model: Name | None = None
    voice: Name | None = None
    response_format: ResponseFormat = "mp3"
    speed: Speed = 1.0
    stream: bool = True
    """A line of JSON for each piece of sound; false: one object."""
    return_timestamps: bool = True
    seed: Seed | None = None


class WordTimestamp(WireModel):
    """When a word of the text is heard, in seconds."""

    word: str
    start_time: float
    end_time: float


class CaptionedSpeech(WireModel):
    """A piece of sound, or all of it."""

    audio: str
    """Base64."""
    audio_format: str
    """Media type."""
    timestamps: list[WordTimestamp] | None
    """Of words whose sound begins here or later; null where none were asked for."""


@router.post(
    "/dev/captioned_speech",
    response_class=Response,
    responses={
        200: {"model": CaptionedSpeech, "content": describe_bytes(_LINES)[200]["content"]},
    },
)
async def captioned_speech(body: CaptionedBody, context: Context) -> Response:
    """Speak one text, with the times of its words. See docs/protocol.md."""
    model_voice = await find_model_voice(context, body.model, body.voice)
    model = model_voice.model
    check_text_length(len(body.input), model.max_input_characters)
    output = output_format(body.response_format, model.sample_rate, model.channels, None)
    output = context.mark(output, model.name)
    validated = ValidatedRequest(
        model, model_voice.request(body.input, body.speed, body.seed), output
    )
    framing = _CaptionedFraming(body, output.audio_format.media_type)
    if not body.stream:
        return WrappedSpeech(context, validated, framing)
    return SpeechResponse(validated, framing, context.metrics, context.settings.stall_timeout_s)


async def find_model_voice(context: ApiContext, model: str | None, voice: str | None) -> ModelVoice:
    """Model and voice. One of Kokoro-FastAPI's that is not served is the first voice of its gender.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound, VoiceNotFound: neither ours nor that server's.
    """
    served = resolve_model(context, model, _FOREIGN_MODELS)
    try:
        return await resolve_model_voice(context, served, voice)
    except VoiceNotFound:
        foreign = _FOREIGN_VOICES.fullmatch(voice or "")
        if foreign is None:
            raise
    gender = _GENDERS[foreign["gender"]]
    own = next((one.id for one in served.voices if one.gender == gender), None)
    return await resolve_model_voice(context, served, own)


class _CaptionedFraming(Framing):
    """Lines of JSON, or one object once the sound is complete."""

    def __init__(self, body: CaptionedBody, audio_format: str) -> None:
        self.media_type = _LINES if body.stream else "application/json"
        self._text, self._whole = body.input, not body.stream
        self._audio_format = audio_format
        self._sound = bytearray()
        self._words: list[WordTimestamp] | None = [] if body.return_timestamps else None

    def frame_audio(self, data: bytes) -> bytes:
        self._sound += data
        return self._flush() if data and not self._whole else b""

    def frame_words(self, words: Sequence[SpokenWord]) -> bytes:
        if self._words is not None:
            self._words += [
                WordTimestamp(
                    word=self._text[one.text_start : one.text_end],
                    start_time=one.start_s,
                    end_time=one.end_s,
                )
                for one in words
            ]
        return b""

    def end(self, duration_s: float) -> bytes:
        return self._flush() if self._whole or self._sound or self._words else b""

    def frame_error(self, error: CantataError) -> bytes | None:
        return None

    def _flush(self) -> bytes:
        line = CaptionedSpeech(
            audio=base64.b64encode(self._sound).decode("ascii"),
            audio_format=self._audio_format,
            timestamps=self._words,
        )
        self._sound.clear()
        self._words = None if self._words is None else []
        return line.model_dump_json().encode() + b"\n"


_WORD = re.compile(r"[^\s;:,.!?—…\"“”()\[\]]+")
"""Phones between marks."""


class PhonemizeBody(WireModel):
    """POST /dev/phonemize."""

    text: Text
    language: Name = "a"
    """As that server names it (`a`, `j`), or BCP 47."""
    model: Name | None = None
    """Not that server's; absent: the first model that says its phones."""


class PhonemizedText(WireModel):
    """How a text is read."""

    phonemes: str
    tokens: list[int] = Field(default_factory=list)
    """Always empty, as there."""


class PhonemesBody(WireModel):
    """POST /dev/generate_from_phonemes."""

    phonemes: Text
    voice: Name
    model: Name | None = None
    """Not that server's, as the next."""
    sign: bool = False
    """Send the file when it is whole, signed with the server's certificate."""


@router.post("/dev/phonemize")
async def phonemize(body: PhonemizeBody, context: Context) -> PhonemizedText:
    """The phones that a text is read as. See docs/protocol.md."""
    if not body.text.strip():
        raise InvalidRequest("text is empty", "text")
    model = _find_phonemizer(context, body.model)
    return PhonemizedText(phonemes=await model.phonemize(body.text, body.language))


def _find_phonemizer(context: ApiContext, name: str | None) -> SpeechModel:
    default = context.get_model(name)
    served = [default] if name else [default, *context.service.models.values()]
    able = [model for model in served if model.capabilities.phonemizes]
    if not able:
        raise InvalidRequest(
            f"{f'model {name!r} does not say' if name else 'no served model says'} which phones "
            "it reads a text as",
            "model",
        )
    return able[0]


@router.post(
    "/dev/generate_from_phonemes",
    response_class=Response,
    responses=describe_sound([FORMATS["wav"]]),
)
async def generate_from_phonemes(body: PhonemesBody, context: Context) -> Response:
    """Speak phones, as a WAV file that is sent while it is made. See docs/protocol.md."""
    model_voice = await find_model_voice(context, body.model, body.voice)
    model = model_voice.model
    if not model.capabilities.phones:
        raise InvalidRequest(f"model {model.name!r} reads no phones", "model")
    if _WORD.search(body.phonemes) is None or set(body.phonemes) & set("[]"):
        raise InvalidRequest("phonemes needs phones and marks, without brackets", "phonemes")
    text = _WORD.sub(lambda match: f"[[{match[0]}]]", body.phonemes)
    check_text_length(len(text), model.max_input_characters)
    output = output_format("wav", model.sample_rate, model.channels, None)
    validated = ValidatedRequest(model, model_voice.request(text), context.mark(output, model.name))
    if body.sign:
        context.check_signable(validated.output)
        return WholeSpeech(context, validated, verify=False)
    framing = AudioFraming(output.audio_format)
    return SpeechResponse(validated, framing, context.metrics, context.settings.stall_timeout_s)


@router.post("/v1/audio/voices/combine", response_class=Response)
async def combine_voices(
    voices: Annotated[Name | list[Name], Body()], context: Context
) -> Response:
    """Refuse to hand out a file of a mixture, as that server does unless it is told otherwise."""
    blend = voices if isinstance(voices, str) else "+".join(voices)
    found = await resolve_model_voice(context, context.get_model(None), blend)
    raise Forbidden(
        f"this server hands out no files of voices, and needs none: {found.voice.voice!r} is the "
        "name of a voice"
    )
