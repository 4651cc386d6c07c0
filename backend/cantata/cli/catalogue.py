"""`cantata voices` and `cantata models`: what is installed here, or what a server offers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cantata.cli.files import write_standard_output
from cantata.cli.server_address import ask_server
from cantata.contract.model.plugin import ModelPlugin


@dataclass(frozen=True, slots=True)
class ListedVoice:
    """A voice, with the fields that `/v1/audio/voices` has."""

    id: str
    name: str
    description: str
    gender: str | None
    aliases: tuple[str, ...]
    kind: str
    model: str | None


async def show_voices(model: str | None, server: str | None, as_json: bool) -> None:
    """Print the voices of a server, of one model here, or of all whose weights ship.

    Raises:
        ConfigError: no such model, or it does not speak given texts.
        ServerError: the server rejected the request, or cannot be reached.
    """
    if server is None:
        listed = [asdict(voice) for voice in list_local_voices(model)]
    else:
        query = {} if model is None else {"model": model}
        listed = (await _ask(server, "/v1/audio/voices", query))["voices"]
    rows = [
        (one["id"], _format_name(one), one["gender"] or "", one["model"] or "", one["description"])
        for one in listed
    ]
    _show(listed, ("voice", "name", "gender", "model", "description"), rows, as_json)


async def show_models(server: str | None, as_json: bool) -> None:
    """Print a server's models, or the installed ones. Raises ServerError: the server rejected the
    request, or cannot be reached."""
    if server is None:
        listed = _list_local_models()
        rows = [(one["id"], ", ".join(one["does"]), one["needs"] or "nothing") for one in listed]
        _show(listed, ("model", "does", "needs"), rows, as_json)
        return
    listed = (await _ask(server, "/v1/models", {}))["data"]
    columns = ("model", "takes", "makes")
    kinds = ("input_modalities", "output_modalities")
    rows = [(one["id"], *(", ".join(one[kind]) for kind in kinds)) for one in listed]
    _show(listed, columns, rows, as_json)


def list_local_voices(model: str | None) -> list[ListedVoice]:
    """The voices of a model here, or of all that speak and ship with their weights.

    Args:
        model: a name or a checkpoint folder; None: all of them.

    Raises:
        ConfigError: no such model, or it does not speak given texts.
    """
    from cantata.config.plugins import list_embedded_models, load_plugins, locate
    from cantata.pipeline.local import LocalModel

    plugins = load_plugins()
    speaking = [name for name in list_embedded_models() if plugins[name].load_builder is not None]
    found = []
    for asked in speaking if model is None else [model]:
        located = locate(asked)
        name = located.plugin.name
        found += [
            ListedVoice(one.id, one.name, one.description, one.gender, one.aliases, "stock", name)
            for one in LocalModel(located).voices
        ]
    return found


def _list_local_models() -> list[dict[str, Any]]:
    from cantata.config.plugins import load_plugins

    return [
        {
            "id": name,
            "does": list(_does(plugin)),
            "needs": _find_needs(plugin),
            "default": plugin.is_default,
        }
        for name, plugin in sorted(
            load_plugins().items(),
            key=lambda one: (one[1].embedded_checkpoint is None, one[0]),
        )
    ]


def _does(plugin: ModelPlugin) -> tuple[str, ...]:
    builders = {
        "speaks": plugin.load_builder,
        "transcribes": plugin.load_transcription_builder,
        "answers": plugin.load_chat_builder,
        "draws": plugin.load_image_builder,
    }
    return tuple(does for does, builder in builders.items() if builder is not None)


def _find_needs(plugin: ModelPlugin) -> str | None:
    """What is to be given or installed before it runs; None: nothing."""
    from cantata.config.plugins import find_install_command, find_weights

    if find_weights(plugin) is not None:
        return None
    command = find_install_command(plugin)
    return "a checkpoint folder" if command is None else f"a checkpoint folder, {command}"


async def _ask(server: str, path: str, query: Mapping[str, str]) -> Any:
    import httpx

    from cantata.client import KEY_VARIABLE
    from cantata.client.speech import authorization, read_http_error

    with ask_server(server):
        async with httpx.AsyncClient(base_url=server, timeout=30) as http:
            headers = authorization(os.environ.get(KEY_VARIABLE))
            response = await http.get(path, params=query, headers=headers)
    if response.is_error:
        raise read_http_error(response)
    return response.json()


def _format_name(voice: Mapping[str, Any]) -> str:
    aliases = ", ".join(voice["aliases"])
    return f"{voice['name']} ({aliases})" if aliases else str(voice["name"])


def _show(
    listed: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    as_json: bool,
) -> None:
    if as_json:
        with write_standard_output():
            print(json.dumps(listed, ensure_ascii=False, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    with write_standard_output():
        Console(markup=False).print(table)
