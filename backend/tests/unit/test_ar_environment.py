"""What the fork server leaves out of vLLM's imports, and how seldom vLLM's threads wake."""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from cantata.stages.ar.environment import as_if_not_installed, threads_that_wake_seldom

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


def read_slack_of_a_new_thread() -> int:
    """Nanoseconds."""
    found: list[int] = []

    def read() -> None:
        slack = Path(f"/proc/{threading.get_native_id()}/timerslack_ns")
        found.append(int(slack.read_text("ascii")))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's timers")
def test_only_threads_on_a_cpu_wake_seldom() -> None:
    usual = read_slack_of_a_new_thread()
    with threads_that_wake_seldom(on_gpu=True):
        assert read_slack_of_a_new_thread() == usual
    with threads_that_wake_seldom(on_gpu=False):
        assert read_slack_of_a_new_thread() > 1000 * usual
    assert read_slack_of_a_new_thread() == usual
