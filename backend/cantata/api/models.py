"""GET /v1/models, /v1/audio/models and /v1/audio/voices: objects, never plain strings."""

from __future__ import annotations

from fastapi import APIRouter

from cantata.api.context import ApiContext, Context
from cantata.api.schemas import (
    AudioModelList,
    AudioModelObject,
    ModelList,
    ModelObject,
    VoiceList,
    VoiceObject,
)
from cantata.contract.service import ServedModel

router = APIRouter(prefix="/v1", tags=["models"])


@router.get("/models")
async def list_models(context: Context) -> ModelList:
    """Every served model."""
    return ModelList(data=[_model_object(context, model) for model in _served(context)])


@router.get("/models/{name:path}")
async def retrieve_model(name: str, context: Context) -> ModelObject:
    """One served model, also by one of its other names."""
    return _model_object(context, context.model(name))


@router.get("/audio/models")
async def list_audio_models(context: Context) -> AudioModelList:
    """Every served model with what a player needs to know."""
    return AudioModelList(
        models=[
            AudioModelObject(
                id=model.name,
                name=model.name,
                sample_rate=model.sample_rate,
                channels=model.channels,
                max_input_characters=model.max_input_characters,
                default_voice=model.voice(None).id,
            )
            for model in _served(context)
        ]
    )


@router.get("/audio/voices")
async def list_voices(context: Context, model: str | None = None) -> VoiceList:
    """The voices of one model, or of all."""
    served = _served(context) if model is None else [context.model(model)]
    return VoiceList(voices=[voice for one in served for voice in _voices_of(one)])


def _served(context: ApiContext) -> list[ServedModel]:
    context.lifecycle.check()
    return list(context.service.models.values())


def _model_object(context: ApiContext, model: ServedModel) -> ModelObject:
    return ModelObject(id=model.name, created=context.created)


def _voices_of(model: ServedModel) -> list[VoiceObject]:
    return [
        VoiceObject(
            id=voice.id,
            name=voice.name,
            description=voice.description,
            aliases=list(voice.aliases),
            model=model.name,
        )
        for voice in model.voices
    ]
