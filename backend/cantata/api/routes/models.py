"""GET /v1/models, /v1/audio/models and /v1/audio/voices: objects, never plain strings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from cantata.api.access.security import is_trusted
from cantata.api.context import ApiContext, Context
from cantata.api.openapi import ERRORS
from cantata.api.routes.voices import list_uploaded_voices
from cantata.api.schemas import (
    AudioModelList,
    AudioModelObject,
    CapabilitiesObject,
    FormatObject,
    ImageLimitsObject,
    ModelList,
    ModelObject,
    TranscriptionLimitsObject,
)
from cantata.api.voice_schemas import VoiceList, VoiceNames, VoiceObject
from cantata.audio.formats import FORMATS
from cantata.contract.data.capabilities import OptionSchemas
from cantata.contract.data.chat import Modality
from cantata.contract.data.errors import ModelNotFound, StageDied
from cantata.contract.image_service import ImageModel
from cantata.contract.service import SpeechModel
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.recordings import MAX_RECORDING_S

router = APIRouter(prefix="/v1", tags=["models"], responses=ERRORS)


@router.get("/models")
async def list_models(context: Context) -> ModelList:
    """Every served model."""
    context.lifecycle.check()
    return ModelList(data=[_build_model_object(context, name) for name in _list_names(context)])


@router.get("/models/{name:path}")
async def retrieve_model(name: str, context: Context) -> ModelObject:
    """Retrieve one served model by its name, or by another name that requests may use for it."""
    context.lifecycle.check()
    return _build_model_object(context, _find_served_name(context, name))


@router.get("/audio/models")
async def list_audio_models(context: Context) -> AudioModelList:
    """Every served model with what a player needs to know, as far as it is known: some load while
    others speak already."""
    models = list[AudioModelObject]()
    for model in _list_served(context):
        with suppress(StageDied):
            models.append(_describe(model))
    return AudioModelList(models=models)


def _describe(model: SpeechModel) -> AudioModelObject:
    """Raises StageDied if the format of its sound is not known yet."""
    able = model.capabilities
    return AudioModelObject(
        id=model.name,
        name=model.name,
        sample_rate=model.sample_rate,
        channels=model.channels,
        max_input_characters=model.max_input_characters,
        default_voice=model.get_voice(None).id,
        sampled=model.sampled,
        formats=_list_formats(model),
        capabilities=CapabilitiesObject(
            instructions=able.instructions,
            references=able.references,
            max_references=able.max_references if able.references else 0,
            languages=list(able.languages),
            voice_blends=able.voice_blends,
            open_text=able.open_text,
            pauses=able.pauses,
            paces=able.paces,
            speaker_tag=able.speaker_tag,
            options=_build_schemas(able.options),
        ),
    )


@router.get("/audio/voices")
async def list_voices(
    request: Request, context: Context, model: str | None = None, legacy: bool = False
) -> VoiceList | VoiceNames:
    """The voices of one model, or of all; uploaded ones come last. `legacy`: their ids alone, as
    older clients of Kokoro-FastAPI read them."""
    served = _list_served(context) if model is None else [context.get_model(model)]
    voices = [voice for one in served for voice in _list_voices(one)]
    # Without a key, uploaded voices are not listed.
    if is_trusted(request.scope):
        voices += await list_uploaded_voices(context, served)
    if legacy:
        return VoiceNames(voices=[voice.id for voice in voices])
    return VoiceList(voices=voices)


def _list_served(context: ApiContext) -> list[SpeechModel]:
    context.lifecycle.check()
    return list(context.service.models.values())


def _list_names(context: ApiContext) -> list[str]:
    """Names of all served models; one that does several things appears once."""
    service = context.service
    kinds = (
        service.models,
        service.chat_models,
        service.image_models,
        service.transcription_models,
    )
    return list(dict.fromkeys(name for kind in kinds for name in kind))


def _find_served_name(context: ApiContext, name: str) -> str:
    """The name of the model that a request with this name would get. Raises ModelNotFound: no
    request would; lists the served names."""
    names = _list_names(context)
    if (meant := context.resolve_alias(name)) in names:
        return meant
    with suppress(ModelNotFound):
        return context.get_model(name).name
    with suppress(ModelNotFound):
        return context.get_image_model(name, edits=False).name
    with suppress(ModelNotFound):
        return context.get_transcription_model(name).name
    raise ModelNotFound(f"no model {name!r}; served: {', '.join(names)}", "model")


def _build_model_object(context: ApiContext, name: str) -> ModelObject:
    """A model may speak texts, answer messages, draw, or do several of these."""
    takes, makes = set[Modality](), set[Modality]()
    if name in context.service.models:
        takes.add(Modality.TEXT)
        makes.add(Modality.AUDIO)
    if name in context.service.chat_models:
        model = context.service.chat_models[name]
        takes |= model.takes
        is_spoken = model.voices or context.find_speech_model(model) is not None
        makes |= {Modality.TEXT, *([Modality.AUDIO] if is_spoken else [])}
    painter = context.service.image_models.get(name)
    if painter is not None:
        takes |= {Modality.TEXT, *([Modality.IMAGE] if painter.limits.max_references else [])}
        makes.add(Modality.IMAGE)
    listener = context.service.transcription_models.get(name)
    if listener is not None:
        takes.add(Modality.AUDIO)
        makes.add(Modality.TEXT)
    return ModelObject(
        id=name,
        created=context.created,
        input_modalities=[one.value for one in Modality if one in takes],
        output_modalities=[one.value for one in Modality if one in makes],
        images=None if painter is None else _build_image_limits(painter),
        transcription=None if listener is None else _build_transcription_limits(context, listener),
    )


def _build_transcription_limits(
    context: ApiContext, model: TranscriptionModel
) -> TranscriptionLimitsObject:
    return TranscriptionLimitsObject(
        languages=list(model.languages),
        translates=model.translates,
        word_times=model.has_timestamps,
        max_bytes=context.settings.max_recording_bytes,
        max_seconds=MAX_RECORDING_S,
    )


def _build_image_limits(model: ImageModel) -> ImageLimitsObject:
    limits = model.limits
    return ImageLimitsObject(
        default_size="{}x{}".format(*limits.default_size),
        multiple=limits.multiple,
        min_side=limits.min_side,
        max_pixels=limits.max_pixels,
        default_steps=limits.default_steps,
        max_steps=limits.max_steps,
        default_guidance=limits.default_guidance,
        max_guidance=limits.max_guidance,
        min_references=limits.min_references,
        max_references=limits.max_references,
        negative_prompt=limits.negative_prompt,
        options=_build_schemas(limits.options),
        conversations=limits.conversations,
        note=model.note,
    )


def _build_schemas(options: OptionSchemas) -> dict[str, dict[str, Any]]:
    return {name: dict(schema) for name, schema in options.items()}


def _list_formats(model: SpeechModel) -> list[FormatObject]:
    return [
        FormatObject(
            id=name,
            media_type=one.media_type,
            sample_rates=None if one.sample_rates is None else list(one.sample_rates),
        )
        for name, one in FORMATS.items()
        if one.takes(model.channels)
    ]


def _list_voices(model: SpeechModel) -> list[VoiceObject]:
    return [
        VoiceObject(
            id=voice.id,
            name=voice.name,
            description=voice.description,
            gender=voice.gender,
            aliases=list(voice.aliases),
            kind="stock",
            model=model.name,
        )
        for voice in model.voices
    ]
