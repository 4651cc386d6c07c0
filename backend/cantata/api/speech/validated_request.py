"""A client's speech request, checked against the model that is to speak it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.schemas import SpeechOptions
from cantata.api.speech.verification import check_recording_consent
from cantata.api.speech.voice_choice import choose_lexicons, choose_voice
from cantata.audio.formats import OutputFormat, output_format
from cantata.contract.catalogue import find_language
from cantata.contract.data.request import SpeechRequest, check_text_length
from cantata.contract.service import SpeechModel
from cantata.text import find_ignored, find_lexicons
from cantata.text.lexicon import select_entries


@dataclass(frozen=True, slots=True)
class ValidatedRequest:
    model: SpeechModel
    request: SpeechRequest
    output: OutputFormat
    ignored: tuple[str, ...] = ()
    """Fields, and SSML in the text, that this model does not follow."""


async def validate_request(
    context: ApiContext, model: SpeechModel, options: SpeechOptions
) -> ValidatedRequest:
    """Validate a request for one model.

    OpenAI's clients send `instructions` routinely, so models without support ignore them: an
    error would break every such client, and the response names what was ignored.

    Raises:
        InvalidRequest: no text, too much of it, no such voice, a recording that cannot be
            followed, or a sample rate or number of channels that the format does not take.
    """
    output = output_format(
        options.response_format, model.sample_rate, model.channels, options.sample_rate
    )
    check_text_length(len(options.input), model.max_input_characters)
    check_recording_consent(context, options.ref_audio, options.attested_by)
    voice = await choose_voice(context, model, options.voice, options.ref_audio, options.ref_text)
    names = [*options.lexicons, *find_lexicons(options.input)]
    entries = choose_lexicons(context, names, voice.id)
    lexicon = await asyncio.to_thread(select_entries, options.input, entries) if entries else ()
    follows = model.capabilities.instructions
    request = SpeechRequest(
        text=options.input,
        voice=voice.voice,
        speed=options.speed,
        seed=options.seed,
        temperature=options.temperature,
        instructions=options.instructions if follows else None,
        reference=voice.reference,
        more_references=voice.more_references,
        lexicon=lexicon,
        options=options.own_options(model.capabilities.options),
        batch=context.spare,
    )
    ignored = ["instructions"] if options.instructions and not follows else []
    ignored += await find_ignored_markup(model, request)
    if not model.capabilities.phones and any(entry.phones for entry in lexicon):
        ignored.append("lexicon:phoneme")
    return ValidatedRequest(model, request, context.mark(output, model.name), tuple(ignored))


async def find_ignored_markup(model: SpeechModel, request: SpeechRequest) -> list[str]:
    """The SSML in a request's text that its model cannot follow, as `ssml:emphasis`. Raises
    InvalidRequest: phones or a value of SSML that are not valid."""
    text, can = request.text, model.capabilities
    if "<" not in text:
        return []
    language = find_language(model.voices, can, request.voice, request.options)
    return await asyncio.to_thread(find_ignored, text, can, language=language)
