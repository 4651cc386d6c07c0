"""Kokoro-FastAPI's routes of phones, and its mixtures of voices."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field
from starlette.responses import Response

from cantata.api.adapters.captioned_speech import find_narrator
from cantata.api.adapters.voices import resolve_model_voice
from cantata.api.context import ApiContext, Context
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import ERRORS, sound
from cantata.api.schemas import Name, Text, WireModel
from cantata.api.speech.framing import AudioFraming
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.validated_request import ValidatedRequest, check_text
from cantata.audio.formats import FORMATS, output_format
from cantata.contract.data.errors import Forbidden, InvalidRequest
from cantata.contract.service import SpeechModel

router = APIRouter(tags=["kokoro-fastapi"], route_class=CheckedRoute, responses=ERRORS)

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
    """Not that server's."""


@router.post("/dev/phonemize")
async def phonemize(body: PhonemizeBody, context: Context) -> PhonemizedText:
    """The phones that a text is read as. See docs/protocol.md."""
    if not body.text.strip():
        raise InvalidRequest("text is empty", "text")
    model = _find_phonemizer(context, body.model)
    return PhonemizedText(phonemes=await model.phonemize(body.text, body.language))


def _find_phonemizer(context: ApiContext, name: str | None) -> SpeechModel:
    default = context.model(name)
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
    "/dev/generate_from_phonemes", response_class=Response, responses=sound([FORMATS["wav"]])
)
async def generate_from_phonemes(body: PhonemesBody, context: Context) -> Response:
    """Speak phones, as a WAV file that is sent while it is made. See docs/protocol.md."""
    narrator = await find_narrator(context, body.model, body.voice)
    model = narrator.model
    if not model.capabilities.phones:
        raise InvalidRequest(f"model {model.name!r} reads no phones", "model")
    if _WORD.search(body.phonemes) is None or set(body.phonemes) & set("[]"):
        raise InvalidRequest("phonemes needs phones and marks, without brackets", "phonemes")
    text = _WORD.sub(lambda match: f"[[{match[0]}]]", body.phonemes)
    check_text(model, text)
    output = output_format("wav", model.sample_rate, model.channels, None)
    order = ValidatedRequest(model, narrator.request(text), output)
    framing = AudioFraming(output.audio_format)
    return SpeechResponse(order, framing, context.metrics, context.settings.stall_timeout_s)


@router.post("/v1/audio/voices/combine", response_class=Response)
async def combine_voices(
    voices: Annotated[Name | list[Name], Body()], context: Context
) -> Response:
    """Refuse to hand out a file of a mixture, as that server does unless it is told otherwise."""
    blend = voices if isinstance(voices, str) else "+".join(voices)
    found = await resolve_model_voice(context, context.model(None), blend)
    raise Forbidden(
        f"this server hands out no files of voices, and needs none: {found.voice.voice!r} is the "
        "name of a voice"
    )
