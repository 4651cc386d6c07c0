"""A checkpoint's chat template, wherever libraries of its time have put it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

TOOL_TEMPLATE = "tool_use"
"""The template that transformers takes for requests with tools, if there are several."""
_FILES = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
"""JSON files with a key `chat_template`, the more specific first."""


def load_chat_template(checkpoint: Path) -> tuple[str, str]:
    """The template for requests with tools, and the file that it is from; empty if there is none.

    `chat_template.jinja` is what transformers saves today; named templates lie beside it in
    `additional_chat_templates`. Older files hold one template, or a list of named ones.

    Raises:
        ConfigError: a file is damaged.
    """
    found = dict[str, tuple[str, str]]()
    for name, template, file in _iterate_templates(checkpoint):
        found.setdefault(name, (template, file))
    return found.get(TOOL_TEMPLATE) or found.get("default") or ("", "")


def _iterate_templates(checkpoint: Path) -> Iterator[tuple[str, str, str]]:
    """Name, template and file, the more specific file first."""
    for path in sorted((checkpoint / "additional_chat_templates").glob("*.jinja")):
        yield path.stem, _read_text(path), path.name
    whole = checkpoint / "chat_template.jinja"
    if whole.is_file():
        yield "default", _read_text(whole), whole.name
    for name in _FILES:
        path = checkpoint / name
        if path.is_file():
            held: Any = read_json(path).values.get("chat_template")
            yield from ((*one, name) for one in _iterate_named(held, path))


def _iterate_named(held: Any, path: Path) -> Iterator[tuple[str, str]]:
    match held:
        case None:
            return
        case str():
            yield "default", held
        case dict():
            yield from ((str(name), str(template)) for name, template in held.items())
        case list() if all(isinstance(one, dict) and "template" in one for one in held):
            yield from ((str(one.get("name", "default")), str(one["template"])) for one in held)
        case _:
            raise ConfigError(f"{path}: chat_template must be a text or named texts")


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
