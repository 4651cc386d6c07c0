"""Finding what to serve by a name, a folder or a hub's id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cantata.contract.errors import ConfigError
from cantata.plugins import installed_plugins, locate


def test_nothing_named_is_what_ships_with_the_server() -> None:
    located = locate(None)
    assert located.checkpoint == located.plugin.embedded_checkpoint


def test_a_checkpoint_is_known_by_its_type(tmp_path: Path) -> None:
    for plugin in installed_plugins().values():
        config = {"model_type": plugin.model_types[0]}
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert locate(str(tmp_path)) == type(locate(None))(plugin, tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(ConfigError, match="'bert' has no plug-in; known"):
        locate(str(tmp_path))


@pytest.mark.parametrize("name", ["nobody", "a/b/c", "./nowhere"])
def test_an_unknown_name_is_rejected_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="solo"):
        locate(name)


def test_a_hub_that_cannot_be_reached_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match=r"'owner/name' .* cannot be downloaded"):
        locate("owner/name")
