"""Names of voices and models that clients of other services send."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.speech.voice_choice import (
    ChosenVoice,
    Entries,
    choose_lexicons,
    choose_voice,
    find_speaker,
)
from cantata.contract.data.errors import ModelNotFound, VoiceNotFound
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechModel
from cantata.text.lexicon import select_entries


@dataclass(frozen=True, slots=True)
class ModelVoice:
    model: SpeechModel
    voice: ChosenVoice
    lexicon: Entries = ()
    """How words are said in all texts of the voice."""

    def request(
        self, text: str, speed: float = 1.0, seed: int | None = None, lexicon: Entries = ()
    ) -> SpeechRequest:
        """A request for a text, in which the words of `lexicon` are said as it says."""
        return SpeechRequest(
            text=text,
            voice=self.voice.voice,
            speed=speed,
            seed=seed,
            reference=self.voice.reference,
            lexicon=select_entries(text, lexicon or self.lexicon),
        )


def resolve_model(context: ApiContext, name: str | None, foreign: re.Pattern[str]) -> SpeechModel:
    """The served model of this name; None and the other service's names mean the default.

    Raises:
        NotReady: no model is served yet.
        ModelNotFound: neither ours nor one of theirs.
    """
    try:
        return context.get_model(name)
    except ModelNotFound:
        if name is None or not foreign.fullmatch(name):
            raise
        return context.get_model(None)


async def resolve_model_voice(
    context: ApiContext,
    model: SpeechModel,
    name: str | None,
    foreign: re.Pattern[str] | None = None,
) -> ModelVoice:
    """The voice of this name, of `model` or else of any other; None and the other service's names
    mean the model's default voice. Raises VoiceNotFound: neither ours nor one of theirs."""
    speaker = await find_speaker(context, model, name)
    try:
        return await _choose(context, speaker, name)
    except VoiceNotFound:
        if name is None or foreign is None or not foreign.fullmatch(name):
            raise
        return await _choose(context, model, None)


async def _choose(context: ApiContext, model: SpeechModel, name: str | None) -> ModelVoice:
    voice = await choose_voice(context, model, name)
    return ModelVoice(model, voice, choose_lexicons(context, (), voice.id))
