"""Voice selection: a voice of the model, an uploaded one, or the speaker of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.schemas import VoiceName, voice_id
from cantata.contract.data.errors import InvalidRequest, VoiceNotFound
from cantata.contract.data.request import ReferenceAudio
from cantata.contract.service import ServedModel
from cantata.references.stored import StoredVoice


@dataclass(frozen=True, slots=True)
class ChosenVoice:
    """The speaker of one request."""

    id: str
    """As the client sees it."""
    voice: str
    """The model's own; with a reference, its default."""
    reference: ReferenceAudio | None = None


async def choose_voice(
    context: ApiContext,
    model: ServedModel,
    voice: VoiceName | None,
    ref_audio: str | None = None,
    ref_text: str | None = None,
) -> ChosenVoice:
    """Find the voice; a model's own voices take precedence over uploaded ones.

    Args:
        context: the app's parts.
        model: must support recordings, if there is one.
        voice: id, name or alias; None is the model's default.
        ref_audio: a URL with a recording of the speaker instead.
        ref_text: its transcript.

    Raises:
        InvalidRequest: no such voice, a model that does not support recordings, or a recording that
            cannot be used.
        StorageFailed: an uploaded voice cannot be read.
    """
    if ref_audio is None and ref_text is not None:
        raise InvalidRequest("ref_text is the transcript of ref_audio; send both", "ref_text")
    name = voice_id(voice)
    uploaded = await _uploaded(context, model, name)
    if uploaded is None:
        own = model.voice(name).id
        if ref_audio is None:
            return ChosenVoice(own, own)
        _check_capable(model, "ref_audio")
        reference = await context.references.read(ref_audio, ref_text, "ref_audio")
        return ChosenVoice(own, own, reference)
    if ref_audio is not None:
        raise InvalidRequest("send an uploaded voice or ref_audio, not both", "ref_audio")
    _check_capable(model, "voice")
    assert context.voices is not None
    reference = await context.voices.reference(uploaded)
    return ChosenVoice(uploaded.id, model.voice(None).id, reference)


async def _uploaded(
    context: ApiContext, model: ServedModel, name: str | None
) -> StoredVoice | None:
    """The uploaded voice of this name, unless the model has one of its own."""
    if name is None or context.voices is None:
        return None
    try:
        model.voice(name)
    except VoiceNotFound:
        await context.voices.refresh(name)
        return context.voices.find(name)
    return None


def _check_capable(model: ServedModel, param: str) -> None:
    if not model.capabilities.references:
        raise InvalidRequest(
            f"{model.name} cannot speak like a recording; its voices are: "
            f"{', '.join(voice.id for voice in model.voices)}",
            param,
        )
