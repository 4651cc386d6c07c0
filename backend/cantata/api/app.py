"""Puts the app together: routes, vendors' protocols, errors, the service's life; optional pages."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import EntryPoint, entry_points

from fastapi import FastAPI

from cantata import __version__
from cantata.api import errors
from cantata.api.access import security
from cantata.api.adapters import (
    azure,
    deepgram,
    deepgram_listen,
    elevenlabs,
    elevenlabs_dictionaries,
    elevenlabs_socket,
    kokoro_fastapi,
    mcp,
)
from cantata.api.context import ApiContext
from cantata.api.errors import shape_errors
from cantata.api.http.bodies import EncodingMiddleware, UnreadBodyMiddleware
from cantata.api.http.overload import OverloadMiddleware
from cantata.api.http.recorded import RecordingMiddleware, open_sinks
from cantata.api.http.request_id import BodyLimitMiddleware, RequestIdMiddleware
from cantata.api.http.request_line import RequestLineMiddleware
from cantata.api.jobs.working import work_on_jobs
from cantata.api.routes import (
    batches,
    beta_sessions,
    chat,
    client_secrets,
    files,
    health,
    images,
    jobs,
    lexicons,
    models,
    provenance,
    realtime,
    realtime_calls,
    reference,
    responses,
    speech,
    transcription,
    voices,
)
from cantata.api.routing import add_routes
from cantata.api.server.drain import DrainMiddleware
from cantata.api.server.lifecycle import ServiceLifecycle
from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.errors import ConfigError, LexiconNotFound
from cantata.contract.transcription_service import TranscriptionService
from cantata.jobs.store import JobStore
from cantata.lexicons.store import LexiconStore
from cantata.media.fetching import Fetcher
from cantata.media.loading import MediaLoader
from cantata.media.request_media import MediaReader
from cantata.media.signing import FileSigner
from cantata.metrics import Metrics
from cantata.references.consent import Statements
from cantata.references.decoding import ReferenceReader
from cantata.references.shared import SharedVoiceStore
from cantata.references.store import VoiceStore
from cantata.references.stored import Voices
from cantata.speech_input.cascade import Cascade
from cantata.watermark.marker import mark_service
from cantata.watermark.pattern import draw_signs

logger = logging.getLogger(__name__)

PAGES_GROUP = "cantata.pages"


def create_app(
    service: TranscriptionService,
    settings: ServerSettings | None = None,
    wyoming: socket.socket | None = None,
) -> FastAPI:
    """The api over one service, which the app starts (unless that has begun) and stops.

    The app is up before the service is: `/health` answers while stages load, `/ready` says 503.

    Args:
        wyoming: a listening socket on which the app serves Wyoming too.

    Raises:
        ConfigError: the folder of uploaded voices or of lexicons cannot be read, a voice is to
            have a lexicon that is not there, the certificate cannot sign, or the log of requests
            cannot be written.
        NotInstalled: files are to be signed, or traces made, and what does so is not there.
    """
    settings = settings or ServerSettings()
    if settings.watermark_key is not None:
        service = mark_service(service, draw_signs(settings.watermark_key))
    context = _make_context(service, settings)
    app = FastAPI(
        title="Cantata",
        version=__version__,
        description="Streaming speech, answers and pictures. Routes and messages: docs/protocol.md",
        # A redirect is not in the protocol's format, and names the host as a proxy sees it.
        redirect_slashes=False,
        # Their scripts would come from elsewhere; `reference` has its own.
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.context = context
    app.state.wyoming = wyoming
    app.state.drain = context.drain  # for pages: their streams end when the server stops
    errors.install(app)
    # The last one added is the outermost: the id must be on the body limit's rejections.
    app.add_middleware(
        BodyLimitMiddleware, max_bytes=settings.max_body_bytes, larger=_list_larger_bodies(settings)
    )
    app.add_middleware(EncodingMiddleware)
    app.add_middleware(OverloadMiddleware, context=context)
    security.install(app, settings.security, context.client_secrets)
    app.add_middleware(DrainMiddleware, drain=context.drain)
    app.add_middleware(UnreadBodyMiddleware)
    app.state.request_sinks = open_sinks(settings)
    if app.state.request_sinks:
        app.add_middleware(RecordingMiddleware, sinks=app.state.request_sinks)
    app.add_middleware(RequestLineMiddleware)
    app.add_middleware(RequestIdMiddleware)
    for routes in (
        health,
        models,
        voices,
        lexicons,
        jobs,
        files,
        batches,
        provenance,
        speech,
        chat,
        responses,
        images,
        realtime,
        realtime_calls,
        client_secrets,
        beta_sessions,
        transcription,
    ):
        add_routes(app, routes.router)
    mount_adapters(app)
    mcp.mount(app, _list_larger_bodies(settings)[mcp.PATH])
    reference.add_reference(app)
    return app


def _make_context(service: TranscriptionService, settings: ServerSettings) -> ApiContext:
    options = settings.references
    loader = MediaLoader(Fetcher(settings.fetch) if settings.fetch else None)
    signer = None if settings.signing is None else FileSigner(settings.signing)
    return ApiContext(
        service,
        settings,
        ServiceLifecycle(service),
        Metrics(),
        ReferenceReader(options.max_bytes, loader),
        _open_voices(options),
        Statements(),
        _open_lexicons(settings),
        MediaReader(loader, settings.media, tagged=settings.provenance != "off", signer=signer),
        signer,
        Cascade(settings.realtime),
        None
        if settings.jobs.folder is None
        else JobStore(settings.jobs.folder, settings.jobs.limits),
    )


def _open_voices(options: ReferenceSettings) -> Voices | None:
    store: VoiceStore | SharedVoiceStore
    if options.voices_url is not None:
        store = SharedVoiceStore(options.voices_url, options.store)
    elif options.voices_dir is not None:
        store = VoiceStore(options.voices_dir, options.store)
    else:
        return None
    store.load()
    return store


def _open_lexicons(settings: ServerSettings) -> LexiconStore | None:
    if settings.references.lexicons_dir is None:
        return None
    store = LexiconStore(settings.references.lexicons_dir)
    store.load()
    for _, name in settings.lexicons:
        try:
            store.find(name)
        except LexiconNotFound as error:
            raise ConfigError(f"--lexicon: {error}") from None
    return store


def _list_larger_bodies(settings: ServerSettings) -> dict[str, int]:
    """Bodies of the routes that take files, as files and as base64."""
    recording, media = settings.references.max_bytes, settings.media.max_bytes
    return {
        "/v1/images/edits": settings.max_body_bytes + media * 4 // 3,
        "/v1/provenance/verify": settings.max_body_bytes + media,
        "/v1/chat/completions": settings.max_body_bytes + media * 4 // 3,
        "/v1/audio/voices": settings.max_body_bytes + 2 * recording,
        "/v1/audio/speech": settings.max_body_bytes + recording * 4 // 3,
        "/v1/audio/transcriptions": settings.max_body_bytes + settings.max_recording_bytes,
        "/v1/audio/translations": settings.max_body_bytes + settings.max_recording_bytes,
        "/v1/jobs": settings.max_body_bytes + settings.jobs.limits.max_source_bytes,
        "/v1/files": settings.max_body_bytes + settings.jobs.limits.max_file_bytes,
        "/v1/listen": settings.max_recording_bytes,
        mcp.PATH: settings.max_body_bytes + media * 4 // 3,
    }


def mount_pages(app: FastAPI) -> None:
    """Add the pages of the entry-point group `cantata.pages`; slow, since it imports them.

    They come last, since a page may take every path that is left.
    """
    for page in entry_points(group=PAGES_GROUP):
        _mount(app, page)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: ApiContext = app.state.context
    context.lifecycle.begin()
    async with AsyncExitStack() as stack:
        for sink in app.state.request_sinks:
            stack.push_async_callback(asyncio.to_thread, sink.close)
        stack.push_async_callback(context.lifecycle.end)
        stack.push_async_callback(context.cascade.close)
        stack.callback(context.recordings.close)
        stack.push_async_callback(context.calls.close)
        stack.push_async_callback(context.resumable.close)
        stack.push_async_callback(app.state.mcp.close)
        limits, sinks = _list_larger_bodies(context.settings), app.state.request_sinks
        await stack.enter_async_context(work_on_jobs(context, limits, sinks))
        if app.state.wyoming is not None:
            # Its package is optional.
            from cantata.api.adapters.wyoming import serve_wyoming

            await stack.enter_async_context(serve_wyoming(context, app.state.wyoming))
        yield


def _mount(app: FastAPI, page: EntryPoint) -> None:
    """Let an optional page add itself. One that misses a dependency is left out, not fatal."""
    try:
        page.load()(app)
    except ImportError as error:
        hint = f"pip install 'cantata[{page.name}]'"
        logger.warning("page %r is not served: %s (%s adds it)", page.name, error, hint)


def mount_adapters(app: FastAPI) -> None:
    """Add vendors' routes; errors on their paths have the vendor's form."""
    for routes in (
        azure,
        deepgram,
        deepgram_listen,
        elevenlabs,
        elevenlabs_dictionaries,
        elevenlabs_socket,
        kokoro_fastapi,
    ):
        add_routes(app, routes.router)
    for routes in (deepgram, deepgram_listen):
        shape_errors(app, routes.PREFIX, deepgram.build_error_body)
    for prefix in elevenlabs.PREFIXES:
        shape_errors(app, prefix, elevenlabs.build_error_body)
