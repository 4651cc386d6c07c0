"""Finding what to serve by a name, a folder or a hub's id."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from cantata.config import plugins
from cantata.config.plugins import ENTRY_POINT_GROUP, LocatedModel, load_plugins, locate
from cantata.contract.data.errors import ConfigError
from tiny_painter.scribe import PLUGIN as SCRIBE


def test_nothing_named_is_what_ships_with_the_server() -> None:
    located = locate(None)
    assert located.checkpoint == located.plugin.embedded_checkpoint


def test_a_checkpoint_is_known_by_its_type(tmp_path: Path) -> None:
    known = [(p, kind) for p in load_plugins().values() for kind in p.model_types]
    for plugin, kind in known:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
        assert locate(str(tmp_path)) == LocatedModel(plugin, tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="no plug-in loads 'bert'; known"):
        locate(str(tmp_path))


def test_a_checkpoint_without_a_type_is_known_by_its_keys(tmp_path: Path) -> None:
    """As Kokoro-82M is published."""
    known = [plugin for plugin in load_plugins().values() if plugin.config_keys]
    assert known
    for plugin in known:
        config: dict[str, object] = {key: {} for key in plugin.config_keys}
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert locate(str(tmp_path)) == LocatedModel(plugin, tmp_path)
        for wrong in ({**config, "model_type": "bert"}, dict(list(config.items())[1:])):
            (tmp_path / "config.json").write_text(json.dumps(wrong), encoding="utf-8")
            with pytest.raises(ConfigError, match="no plug-in loads"):
                locate(str(tmp_path))


def test_without_a_type_its_architecture_counts(tmp_path: Path) -> None:
    plugin = next(iter(load_plugins().values()))
    config: dict[str, str] = {"architecture": plugin.model_types[0]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert locate(str(tmp_path)) == LocatedModel(plugin, tmp_path)
    config["model_type"] = "bert"
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError, match="no plug-in loads 'bert'; known"):
        locate(str(tmp_path))


def test_a_plug_in_can_be_named_for_a_checkpoint(tmp_path: Path) -> None:
    for plugin in load_plugins().values():
        assert locate(f"{plugin.name}={tmp_path}") == LocatedModel(plugin, tmp_path)
    with pytest.raises(ConfigError, match="'nowhere' is not a folder"):
        locate("solo=nowhere")
    with pytest.raises(ConfigError, match="solo"):
        locate(f"nobody={tmp_path}")


def test_a_folder_of_parts_is_known_by_its_pipeline(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (tmp_path / "model_index.json").write_text('{"_class_name": "Nobody"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="no plug-in loads 'Nobody'"):
        locate(str(tmp_path))
    kinds = [k for p in load_plugins().values() if p.load_image_builder for k in p.model_types]
    assert kinds
    for kind in kinds:
        index = json.dumps({"_class_name": kind})
        (tmp_path / "model_index.json").write_text(index, encoding="utf-8")
        assert kind in locate(str(tmp_path)).plugin.model_types


@pytest.mark.parametrize("name", ["nobody", "a/b/c", "./nowhere"])
def test_an_unknown_name_is_rejected_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="solo"):
        locate(name)


def test_a_hub_that_cannot_be_reached_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"'owner/name' .* cannot be downloaded"):
        locate("owner/name")


PLUGIN_FILE = """
from dataclasses import replace
from cantata_models.solo import plugin
ONE, TWO = (replace(plugin.PLUGIN, name=name) for name in {names})
"""


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Makes packages of models, given as folder -> text of its `plugin.py`, and offers them."""
    monkeypatch.syspath_prepend(tmp_path)

    def offer(package: str, *more: str, **plugins: str) -> None:
        for folder, text in plugins.items():
            (tmp_path / package / folder).mkdir(parents=True)
            (tmp_path / package / folder / "__init__.py").touch()
            (tmp_path / package / folder / "plugin.py").write_text(text, encoding="utf-8")
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "no_model").mkdir()
        (tmp_path / package / "no_model" / "__init__.py").touch()
        points = [EntryPoint("any", value, ENTRY_POINT_GROUP) for value in (package, *more)]
        monkeypatch.setattr("cantata.config.plugins.entry_points", lambda group: points)

    return offer


def test_every_folder_with_a_plugin_is_found(offered: Callable[..., None]) -> None:
    offered("found", a=PLUGIN_FILE.format(names=("one", "two")), b="NOTHING = None")
    assert set(load_plugins()) == {"one", "two"}


def test_two_models_of_one_name_are_rejected(offered: Callable[..., None]) -> None:
    offered("twice", "cantata_models", a=PLUGIN_FILE.format(names=("one", "solo")))
    with pytest.raises(ConfigError, match="'cantata_models': there is another model 'solo'"):
        load_plugins()


def test_a_model_that_cannot_be_imported_is_named(offered: Callable[..., None]) -> None:
    offered("broken", a="import nothing_of_this_name")
    with pytest.raises(ConfigError, match=r"models in 'broken' cannot be imported.*nothing_of"):
        load_plugins()


@pytest.mark.parametrize(
    ("kinds", "allowed"),
    [
        ({"speech"}, True),
        ({"chat"}, True),
        ({"images"}, True),
        ({"chat", "images"}, True),
        (set(), False),
        ({"speech", "chat"}, False),
        ({"speech", "images"}, False),
        ({"speech", "chat", "images"}, False),
    ],
)
def test_a_model_speaks_texts_or_else_answers_and_draws(kinds: set[str], allowed: bool) -> None:
    speech, chat = load_plugins()["solo"].load_builder, SCRIBE.load_chat_builder
    builders: dict[str, Any] = {
        "load_builder": speech if "speech" in kinds else None,
        "load_chat_builder": chat if "chat" in kinds else None,
        "load_image_builder": SCRIBE.load_image_builder if "images" in kinds else None,
    }
    with nullcontext() if allowed else pytest.raises(ConfigError, match="either speaks texts, or"):
        replace(SCRIBE, **builders)


def test_weights_of_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {n: replace(p, embedded_checkpoint=None) for n, p in load_plugins().items()}
    monkeypatch.setattr(plugins, "load_plugins", lambda: without)
    with pytest.raises(ConfigError, match=r"pip install 'cantata\[hibari\]'"):
        locate("hibari")
    with pytest.raises(ConfigError, match=r"give a checkpoint$"):
        locate("solo")


def test_weights_of_another_package_are_served_where_they_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "weights.one").touch()
    solo = load_plugins()["solo"]
    found: list[Path] = []

    def find() -> Path | None:
        return found[0] if found else None

    def open_file(file: Path) -> Path:
        return file.with_suffix(".folder")

    plugin = replace(
        solo,
        embedded_checkpoint=None,
        find_checkpoint=find,
        install="pip install it",
        file_suffix=".one",
        open_file=open_file,
    )
    monkeypatch.setattr(plugins, "load_plugins", lambda: {"solo": plugin})
    with pytest.raises(ConfigError, match=r"give a checkpoint, or pip install it$"):
        locate("solo")
    found.append(tmp_path / "weights.one")
    served = LocatedModel(plugin, tmp_path / "weights.folder")
    assert locate("solo") == served
    assert locate(str(found[0])) == served
    assert plugins.list_embedded_models() == []


def test_a_file_that_is_no_checkpoint_is_refused_with_what_may_be(tmp_path: Path) -> None:
    (tmp_path / "model.txt").touch()
    with pytest.raises(ConfigError, match=r"model.txt: not a checkpoint; give a folder.*\.gguf"):
        locate(str(tmp_path / "model.txt"))


def test_a_folder_of_whole_files_is_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "llama.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match=r"give one of its files.*: llama\.gguf$"):
        locate(str(tmp_path))
