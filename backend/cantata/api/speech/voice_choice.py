"""The voice of a request, of the model's, of uploaded ones or the speakers of recordings, and its
lexicons: those that it names, and those of its voice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cantata.api.context import ApiContext, has_voice
from cantata.api.schemas import VoiceName, voice_id
from cantata.contract.data.errors import Forbidden, InvalidRequest, VoiceNotFound
from cantata.contract.data.request import LexiconEntry, ReferenceAudio
from cantata.contract.service import SpeechModel
from cantata.lexicons.store import LexiconStore, StoredLexicon
from cantata.references.stored import StoredVoice

MAX_LEXICONS = 8
"""Most lexicons that one request may name."""

Entries = tuple[LexiconEntry, ...]


def get_lexicon_store(context: ApiContext) -> LexiconStore:
    """The store. Raises Forbidden: this server keeps no lexicons."""
    if context.lexicons is None:
        raise Forbidden("this server keeps no lexicons")
    return context.lexicons


def choose_lexicons(context: ApiContext, names: Sequence[str], voice: str) -> Entries:
    """The entries of the named lexicons, in this order, then of the voice's own.

    Raises:
        LexiconNotFound: one is not kept here.
        InvalidRequest: too many.
    """
    if len(names) > MAX_LEXICONS:
        raise InvalidRequest(f"a request names at most {MAX_LEXICONS} lexicons", "lexicons")
    named = [get_lexicon_store(context).find(name) for name in names]
    return _collect_entries([*named, *_find_default_lexicons(context, voice)])


def _find_default_lexicons(context: ApiContext, voice: str) -> Iterable[StoredLexicon]:
    """Lexicons that the operator has given to all voices, or to this one, if not deleted since."""
    wanted = [name for who, name in context.settings.lexicons if who in ("", voice)]
    kept = context.lexicons.lexicons if context.lexicons and wanted else ()
    return [one for name in wanted for one in kept if name in (one.id, one.name)]


def _collect_entries(lexicons: Iterable[StoredLexicon]) -> Entries:
    return tuple(entry for lexicon in lexicons for entry in lexicon.entries)


@dataclass(frozen=True, slots=True)
class ChosenVoice:
    """The speaker of one request, or its speakers."""

    id: str
    """The voice's id as clients see it; with several speakers, the first one's."""
    voice: str
    """The model's own; with a reference, its default."""
    reference: ReferenceAudio | None = None
    more_references: tuple[ReferenceAudio, ...] = ()
    """Recordings of the other speakers."""


async def choose_model(
    context: ApiContext,
    name: str | None,
    voice: VoiceName | Sequence[VoiceName] | None,
    ref_audio: str | Sequence[str] | None = None,
) -> SpeechModel:
    """The model of this name. If a request names none that is served: for a recording or an
    uploaded voice, the first that speaks like recordings; else the one that has the voice. The
    default model comes first wherever it can.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound: no model, nor any of OpenAI's, has that name.
    """
    model = context.get_model(name)
    if context.resolve_alias(name) in context.service.models:
        return model
    if ref_audio is not None or (isinstance(voice, Sequence) and not isinstance(voice, str)):
        return find_copying_model(context, model)
    return model if voice is None else await find_speaker(context, model, voice_id(voice))


def find_copying_model(context: ApiContext, model: SpeechModel) -> SpeechModel:
    """This one if it speaks like recordings, else the first that does, else this one."""
    models = (model, *context.service.models.values())
    return next((one for one in models if one.capabilities.references), model)


async def find_speaker(context: ApiContext, model: SpeechModel, voice: str | None) -> SpeechModel:
    """Who speaks with a voice: this model if it has it, for an uploaded one the first that speaks
    like recordings, else the first that has it, else this model."""
    if has_voice(model, voice):
        return model
    if await _find_uploaded(context, model, voice) is not None:
        return find_copying_model(context, model)
    return next((one for one in context.service.models.values() if has_voice(one, voice)), model)


async def choose_voice(
    context: ApiContext,
    model: SpeechModel,
    voice: VoiceName | Sequence[VoiceName] | None,
    ref_audio: str | Sequence[str] | None = None,
    ref_text: str | Sequence[str] | None = None,
) -> ChosenVoice:
    """Find the voice; a model's own voices take precedence over uploaded ones.

    Args:
        model: must support recordings, if there are any.
        voice: id, name or alias; a list of uploaded ones, by speaker; None is the model's default.
        ref_audio: a URL with a recording of the speaker instead, or a list of them.

    Raises:
        InvalidRequest: no such voice, a model that does not support recordings or so many, or a
            recording that cannot be used.
        StorageFailed: an uploaded voice cannot be read.
    """
    if isinstance(voice, Sequence) and not isinstance(voice, str):
        if ref_audio is not None or ref_text is not None:
            param = "ref_text" if ref_audio is None else "ref_audio"
            raise InvalidRequest("send a list of uploaded voices or ref_audio, not both", param)
        return await _find_uploaded_speakers(context, model, [voice_id(each) for each in voice])
    name = voice_id(voice)
    recordings = _pair_with_transcripts(ref_audio, ref_text)
    uploaded = await _find_uploaded(context, model, name)
    if uploaded is None:
        own = model.get_voice(name).id
        if ref_audio is None:
            return ChosenVoice(own, own)
        _check_capable(model, "ref_audio", len(recordings))
        first, *others = [
            await context.references.read(audio, text, "ref_audio") for audio, text in recordings
        ]
        return ChosenVoice(own, own, first, tuple(others))
    if ref_audio is not None:
        raise InvalidRequest("send an uploaded voice or ref_audio, not both", "ref_audio")
    return await _choose_uploaded(context, model, [uploaded])


def _pair_with_transcripts(
    ref_audio: str | Sequence[str] | None, ref_text: str | Sequence[str] | None
) -> list[tuple[str, str | None]]:
    if ref_audio is None:
        if ref_text is not None:
            raise InvalidRequest("ref_text is the transcript of ref_audio; send both", "ref_text")
        return []
    if isinstance(ref_audio, str):
        if ref_text is not None and not isinstance(ref_text, str):
            raise InvalidRequest("ref_text is a list, but ref_audio is one recording", "ref_text")
        return [(ref_audio, ref_text)]
    if isinstance(ref_text, str) or len(ref_text or ref_audio) != len(ref_audio):
        found = "one text" if isinstance(ref_text, str) else f"a list of {len(ref_text or ())}"
        raise InvalidRequest(
            f"ref_audio has {len(ref_audio)} recordings, so ref_text must be a list of as many "
            f"transcripts, not {found}",
            "ref_text",
        )
    if ref_text is None:
        return [(audio, None) for audio in ref_audio]
    return list(zip(ref_audio, ref_text, strict=True))


async def _find_uploaded_speakers(
    context: ApiContext, model: SpeechModel, names: Sequence[str | None]
) -> ChosenVoice:
    """The uploaded voices of a text's speakers. Raises InvalidRequest: one is not an uploaded
    voice."""
    _check_capable(model, "voice", len(names))
    found = []
    for name in names:
        uploaded = await _find_uploaded(context, model, name)
        if uploaded is None:
            own = model.get_voice(name).id
            raise InvalidRequest(
                f"a list of voices may have only uploaded ones; {own!r} is one of the model's own",
                "voice",
            )
        found.append(uploaded)
    return await _choose_uploaded(context, model, found)


async def _choose_uploaded(
    context: ApiContext, model: SpeechModel, uploaded: Sequence[StoredVoice]
) -> ChosenVoice:
    _check_capable(model, "voice", len(uploaded))
    assert context.voices is not None
    first, *others = [await context.voices.reference(each) for each in uploaded]
    return ChosenVoice(uploaded[0].id, model.get_voice(None).id, first, tuple(others))


async def _find_uploaded(
    context: ApiContext, model: SpeechModel, name: str | None
) -> StoredVoice | None:
    """The uploaded voice of this name, unless the model has one of its own."""
    if name is None or context.voices is None:
        return None
    try:
        model.get_voice(name)
    except VoiceNotFound:
        await context.voices.refresh(name)
        return context.voices.find(name)
    return None


def _check_capable(model: SpeechModel, param: str, recordings: int) -> None:
    if not model.capabilities.references:
        raise InvalidRequest(
            f"{model.name} cannot speak like a recording; its voices are: "
            f"{', '.join(voice.id for voice in model.voices)}",
            param,
        )
    max_recordings = model.capabilities.max_references
    if not 1 <= recordings <= max_recordings:
        raise InvalidRequest(
            f"{param} is a list of {recordings} speakers; {model.name} follows 1 to "
            f"{max_recordings} at a time",
            param,
        )
