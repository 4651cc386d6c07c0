"""The model with which `cantata transcribe` listens, if no server was named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cantata.cli.transcribe_options import TranscribeArguments
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.languages import has_language
from cantata.contract.transcription_service import TranscriptionModel

if TYPE_CHECKING:
    from cantata.config.plugins import LocatedModel


@asynccontextmanager
async def open_listener(options: TranscribeArguments) -> AsyncIterator[TranscriptionModel]:
    """The model, loaded in this process or in stage processes.

    Raises:
        ConfigError: there is no such model, or it does not transcribe.
        InvalidRequest: it does not do what is asked for.
    """
    from cantata.config.plugins import locate
    from cantata.pipeline.local_transcription import LocalTranscriptionModel, is_possible

    located = locate(options.model or find_listener())
    if located.plugin.load_transcription_builder is None:
        raise ConfigError(f"model {located.plugin.name!r} does not transcribe")
    if is_possible(located):
        local = LocalTranscriptionModel(located)
        try:
            _check(options, local)
            yield local
        finally:
            local.close()
        return
    async with _serve_model(located) as served:
        _check(options, served)
        yield served


@asynccontextmanager
async def _serve_model(located: LocatedModel) -> AsyncIterator[TranscriptionModel]:
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    service = create_service(plan_service(f"{located.plugin.name}={located.checkpoint}"))
    try:
        await service.start()
        yield service.get_transcription_model(None)
    finally:
        await service.stop()


def find_listener() -> str:
    """The model that transcribes whose weights ship with it; the first by name. Raises ConfigError:
    there is none."""
    from cantata.config.plugins import list_embedded_recognizers

    for name in list_embedded_recognizers():
        return name
    raise ConfigError(
        "no model that transcribes ships with this installation; pip install 'cantata[whisper]', "
        "or give one with --model, or --server"
    )


def _check(options: TranscribeArguments, model: TranscriptionModel) -> None:
    if options.translate and not model.translates:
        raise InvalidRequest(f"model {model.name!r} translates nothing; give a multilingual one")
    language = options.language
    if language is not None and model.languages and not has_language(model.languages, language):
        raise InvalidRequest(f"--language {language!r}: valid: {', '.join(model.languages)}")
