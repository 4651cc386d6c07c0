"""What the fork server leaves out of vLLM's imports."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cantata.stages.ar.environment import as_if_not_installed

OPTIONAL = "an_optional_package"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{OPTIONAL}.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, OPTIONAL, raising=False)


@pytest.mark.usefixtures("installed")
def test_an_optional_package_is_found_again_afterwards() -> None:
    with as_if_not_installed(OPTIONAL):
        assert find_spec(OPTIONAL) is None
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(OPTIONAL)
    assert importlib.import_module(OPTIONAL).__name__ == OPTIONAL


@pytest.mark.usefixtures("installed")
def test_one_that_is_in_use_stays() -> None:
    used = importlib.import_module(OPTIONAL)
    with as_if_not_installed(OPTIONAL, "not_installed_at_all"):
        assert importlib.import_module(OPTIONAL) is used
    assert sys.modules[OPTIONAL] is used
    assert "not_installed_at_all" not in sys.modules
