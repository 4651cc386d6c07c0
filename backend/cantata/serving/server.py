"""What `cantata serve` puts together: models here or on replicas, the api over them, sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cantata.contract.data.errors import CantataError
from cantata.utils.logs import LogFormat

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI
    from rich.console import Console

    from cantata.api.server.server_config import ServerOptions
    from cantata.config import ConversationDeployment, Dtype
    from cantata.contract.transcription_service import TranscriptionService
    from cantata.distributed.address import Address


@dataclass(frozen=True, slots=True)
class ListenOptions:
    host: str
    port: int
    """0 takes a free one."""
    wyoming_port: int | None = None
    """None: Wyoming is not served."""
    shared: bool = False
    """Other servers of this user may accept from the same port."""


class Source(Protocol):
    """Where a server's models are."""

    def prepare(self, options: ServerOptions) -> ServerOptions:
        """Find the models, and begin what takes long; the options with what the models say. Raises
        ConfigError: they cannot be served."""
        ...

    def service(self, log_format: LogFormat) -> TranscriptionService:
        """The models, once prepared."""
        ...

    @property
    def status(self) -> str:
        """What happens until they are ready."""
        ...


def with_conversation(options: ServerOptions, deployed: ConversationDeployment) -> ServerOptions:
    """The options, and what a deployment says of spoken conversations where they say nothing."""
    return replace(
        options,
        chat=options.chat.with_defaults(deployed.chat_url, deployed.chat_model),
        transcription=options.transcription.with_defaults(
            deployed.transcription_url, deployed.transcription_model
        ),
    )


def add_model_aliases(
    options: ServerOptions, models: Sequence[str], served: Sequence[str]
) -> ServerOptions:
    """The options, and what `--model` was given as one more name of each model, whole and by its
    last part: clients of other servers are set up with a hub's id or a folder's name. Names of
    models and of the operator's stay theirs; of two models, the first one has the name.

    Args:
        options: with the operator's names.
        models: names, folders or a hub's ids, as `--model` was given them.
        served: the name of each.
    """
    taken = {*served, *(alias.partition("=")[0].strip() for alias in options.aliases)}
    added = list[str]()
    for given, name in zip(models, served, strict=True):
        for one in (given, Path(given).name):
            if one and "=" not in one and one not in taken:
                taken.add(one)
                added.append(f"{one}={name}")
    return replace(options, aliases=(*options.aliases, *added))


class ModelsHere:
    """Models whose stages run on this machine, but for those that a deployment puts elsewhere.

    Args:
        models: names, checkpoint folders or a hub's ids; none: all that ship with weights. If none
            of those that are named transcribes, one that ships with weights comes later.
        deploy: deployment files of the first ones.
        key_file: of the key that stage hosts ask for.
        idle_unload_s: seconds after its last request until a model is unloaded, where its
            deployment does not say; None: never.
    """

    def __init__(
        self,
        models: Sequence[str],
        deploy: Sequence[Path],
        dtype: Dtype | None,
        key_file: Path | None = None,
        idle_unload_s: float | None = None,
    ) -> None:
        self._named = list(models), list(deploy), dtype
        self._key_file = key_file
        self._idle_unload_s = idle_unload_s

    def prepare(self, options: ServerOptions) -> ServerOptions:
        """Plan the stages and begin their imports."""
        from cantata.pipeline.plan import (
            check_speech_models,
            plan_services,
            preload_stages,
            unload_when_idle,
        )

        plans = plan_services(*self._named)
        options = with_conversation(options, plans[0].deployment.realtime)
        check_speech_models(plans)
        names = [plan.located.plugin.name for plan in plans]
        options = add_model_aliases(options, self._named[0], names[: len(self._named[0])])
        if not self._named[0]:
            # What ships with weights is served. Nobody has to wait for all of it.
            self._first, self._later = plans[:1], plans[1:]
        else:
            self._first, self._later = plans, []
            if options.transcription.url is None:
                # Spoken conversations need the words; whoever was named starts before.
                from cantata.pipeline.plan import plan_recognizer

                self._later = plan_recognizer(plans)
        self._first = unload_when_idle(self._first, self._idle_unload_s)
        self._later = unload_when_idle(self._later, self._idle_unload_s)
        preload_stages(self._first)
        return options

    def service(self, log_format: LogFormat) -> TranscriptionService:
        """Over pipelines in stage processes."""
        from cantata.pipeline.service import create_service
        from cantata.serving.remote_stages import build_remote_stages_factory

        remote_stages = build_remote_stages_factory((*self._first, *self._later), self._key_file)
        return create_service(
            *self._first, later=self._later, log_format=log_format, remote_stages=remote_stages
        )

    @property
    def status(self) -> str:
        names = ", ".join(plan.located.plugin.name for plan in (*self._first, *self._later))
        return f"loading {names} ..."


class ModelsOnReplicas:
    """Models of replicas, on this machine or on others.

    Args:
        addresses: of the replicas, each HOST:PORT.
        key_file: of the key that they ask for.
    """

    def __init__(self, addresses: Sequence[str], key_file: Path | None) -> None:
        self._named, self._key_file = addresses, key_file
        self._addresses: list[Address] = []

    def prepare(self, options: ServerOptions) -> ServerOptions:
        """Read the addresses and the key."""
        from cantata.distributed.address import Address
        from cantata.distributed.key import check_key, read_key

        self._addresses = [Address.parse(name) for name in self._named]
        self._key = read_key(self._key_file)
        for address in self._addresses:
            check_key(self._key, address)
        return options

    def service(self, log_format: LogFormat) -> TranscriptionService:
        """Over links."""
        from cantata.distributed.address import StaticDirectory
        from cantata.distributed.edge.service import RemoteService

        return RemoteService(StaticDirectory(self._addresses), self._key)

    @property
    def status(self) -> str:
        return f"waiting for {', '.join(map(str, self._addresses))} ..."


async def serve(
    listening: ListenOptions,
    source: Source,
    options: ServerOptions,
    log_format: LogFormat,
    console: Console,
    on_accepting: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal ends it. Raises CantataError: the sockets, the options or the models are
    not usable."""
    from rich.panel import Panel

    from cantata.api.server.listening import get_url
    from cantata.api.server.server_config import build_settings

    listener = _listen(listening.host, listening.port, shared=listening.shared)
    with listener:
        url = get_url(listener)
        settings = build_settings(source.prepare(options), listener.getsockname()[0])
        wyoming = None
        if listening.wyoming_port is not None:
            # Its clients cannot send a key: where keys are required, they must be on this machine.
            wyoming_host = "127.0.0.1" if settings.security.api_keys else listening.host
            wyoming = _listen_wyoming(wyoming_host, listening.wyoming_port)
        # What was prepared takes seconds; so do these imports.
        from cantata.api.app import create_app, mount_pages
        from cantata.api.server.serve import serve as serve_app
        from cantata.utils.low_latency import shorten_time_slice

        shorten_time_slice()
        web_app = create_app(source.service(log_format), settings, wyoming=wyoming)
        console.print(source.status, highlight=False)
        # The models load elsewhere while this process imports the pages.
        web_app.state.context.lifecycle.begin()
        await asyncio.to_thread(mount_pages, web_app)

        def announce() -> None:
            console.print(Panel.fit(f"[bold]{url}[/bold]", title="Cantata is ready"))
            if wyoming is not None:
                where = "{}:{}".format(*wyoming.getsockname()[:2])
                console.print(f"Wyoming on {where}", highlight=False)

        if not await serve_app(web_app, listener, announce, on_accepting):
            raise CantataError(_explain_missing(web_app))


def _explain_missing(web_app: FastAPI) -> str:
    return str(web_app.state.context.lifecycle.error)


def _listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    from cantata.api.server.listening import bound, listen

    try:
        return bound(host, port, shared=True) if shared else listen(host, port)
    except OSError as error:
        raise CantataError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _listen_wyoming(host: str, port: int) -> socket.socket:
    if find_spec("wyoming") is None:
        raise CantataError("Wyoming needs the package wyoming: pip install 'cantata[wyoming]'")
    return _listen(host, port)
