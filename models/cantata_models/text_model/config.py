"""What a text model's folder says of itself: its architecture, where answers end, how they are
sampled. Light to import: listing and locating models read it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SamplingOptions
from cantata_layers.json_fields import JsonFields, read_json

CONFIG, GENERATION = "config.json", "generation_config.json"
_REGISTRY = Path("model_executor", "models", "registry.py")
_OWN, _OF_TRANSFORMERS = "_TEXT_GENERATION_MODELS", "_TRANSFORMERS_SUPPORTED_MODELS"
"""vLLM's tables of the networks that it has itself, and of those that it takes from transformers
and gives its own layers."""
_TABLES = (_OWN, _OF_TRANSFORMERS)
_SEVERAL_INPUTS = "MultiModal"
"""In vLLM's names of classes for networks that take more than text."""


@dataclass(frozen=True, slots=True)
class TextModelSettings:
    """Defaults of a checkpoint's answers."""

    end_tokens: tuple[int, ...]
    """Any of them ends an answer. Empty: only lengths do."""
    sampling: SamplingOptions
    """None: the deployment's default."""


def is_text_model(folder: Path) -> bool:
    """Whether vLLM generates text with the folder's architecture."""
    try:
        return _find_architecture(read_json(folder / CONFIG)) in list_architectures()
    except ConfigError:
        return False


def find_architecture(folder: Path) -> str:
    """Return the name of the folder's network in vLLM's registry. Raises ConfigError: the folder
    names none, or one that vLLM generates no text with."""
    name = _find_architecture(read_json(folder / CONFIG))
    if name not in list_architectures():
        raise ConfigError(f"{folder / CONFIG}: vLLM generates no text with {name!r}")
    assert name is not None
    return name


@cache
def list_architectures() -> frozenset[str]:
    """Return the names of text generation models in the installed vLLM's registry; none without
    vLLM.

    WHY from its source: importing the registry takes six seconds and 400 MB, and every command
    locates models.
    """
    spec = find_spec("vllm")
    tables: dict[str | None, Mapping[str, tuple[str, str]]] = {}
    for folder in (spec and spec.submodule_search_locations) or ():
        for node in ast.parse(Path(folder, _REGISTRY).read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and _name_target(node.targets[0]) in _TABLES:
                tables[_name_target(node.targets[0])] = ast.literal_eval(node.value)
    borrowed = tables.get(_OF_TRANSFORMERS, {}).items()
    written = (name for name, (_, kind) in borrowed if _SEVERAL_INPUTS not in kind)
    return frozenset((*tables.get(_OWN, ()), *written))


def find_vocabulary(folder: Path) -> int:
    """Return how many tokens the network scores. Raises ConfigError: the folder does not say it."""
    fields = read_json(folder / CONFIG)
    nested: Any = fields.values.get("text_config")
    own = fields.values.get("vocab_size")
    value = own if own is not None else (nested or {}).get("vocab_size")
    if not isinstance(value, int):
        raise ConfigError(f"{fields.where}: vocab_size must be a number of tokens, not {value!r}")
    return value


def load_settings(folder: Path) -> TextModelSettings:
    """Read generation_config.json, where the older config.json says nothing else. Raises
    ConfigError: a file is damaged, or a value of the wrong type."""
    path = folder / GENERATION
    fields = read_json(path if path.is_file() else folder / CONFIG)
    ends = fields.values.get("eos_token_id")
    tokens = [ends] if isinstance(ends, int) else list(ends or ())
    if not all(isinstance(token, int) for token in tokens):
        raise ConfigError(f"{fields.where}: eos_token_id must be one token or several: {ends!r}")
    own = _find_turn_end(folder)
    unique = dict.fromkeys([*tokens, *([] if own is None else [own])])
    return TextModelSettings(
        tuple(unique), _read_sampling(fields) if path.is_file() else _NO_SAMPLING
    )


_NO_SAMPLING = SamplingOptions()


def _read_sampling(fields: JsonFields) -> SamplingOptions:
    def get(key: str, kind: type[float] | type[int]) -> Any:
        return None if fields.values.get(key) is None else fields.get(key, kind)

    return SamplingOptions(
        temperature=get("temperature", float),
        top_k=get("top_k", int),
        top_p=get("top_p", float),
        repetition_penalty=get("repetition_penalty", float),
    )


def _find_turn_end(folder: Path) -> int | None:
    """Return the token that the tokenizer ends a turn with."""
    config, whole = folder / "tokenizer_config.json", folder / "tokenizer.json"
    if not (config.is_file() and whole.is_file()):
        return None
    named: Any = read_json(config).values.get("eos_token")
    text = named.get("content") if isinstance(named, Mapping) else named
    added: Any = read_json(whole).values.get("added_tokens") or ()
    return next((one["id"] for one in added if one.get("content") == text), None)


def _find_architecture(fields: JsonFields) -> str | None:
    match fields.values.get("architectures"):
        case [str(name), *_]:
            return name
    return None


def _name_target(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else None
