"""Tests side by side (`pytest -n 4`): what shares a server stays together, timed tests run alone.

One pytest run, one summary. Each file is one unit of work for one worker, so that its fixtures are
set up once. Files that share a server are one unit. While a test marked `timed` runs,
no other worker runs a test.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SHARED_SERVER = "the shared server"
"""The unit of the files below, which only send requests to the server of `e2e/conftest.py`; no
other worker needs to start it. In this order: those with a browser follow each other, and Gradio,
which the server keeps once it was opened, comes after the idle server's figures."""
ON_SHARED_SERVER = (
    "e2e/test_page_code.py",
    "e2e/test_first_packet.py",
    "e2e/test_stampede.py",
    "e2e/test_page.py",
    "e2e/test_page_chat.py",
    "e2e/test_page_dark.py",
    "e2e/test_page_kept.py",
    "e2e/test_page_languages.py",
    "e2e/test_page_layout.py",
    "e2e/test_page_listen.py",
    "e2e/test_page_books.py",
    "e2e/test_page_player.py",
    "e2e/test_page_read.py",
    "e2e/test_page_stream.py",
    "e2e/test_page_tabs.py",
    "e2e/test_page_takes.py",
    "e2e/test_page_talk.py",
    "e2e/test_page_talk_more.py",
    "e2e/test_page_call.py",
    "e2e/test_call.py",
    "e2e/test_talk_command.py",
    "e2e/test_page_voice.py",
    "e2e/test_page_voices.py",
    "e2e/test_docs_page.py",
    "e2e/test_device.py",
    "e2e/test_first_load.py",
    "e2e/test_concurrency.py",
    "e2e/test_crowd.py",
    "e2e/test_firefox.py",
    "e2e/test_judges.py",
    "e2e/test_proxies.py",
    "e2e/test_realtime.py",
    "e2e/test_interruptions.py",
    "e2e/test_howtos.py",
    "e2e/test_voice.py",
    "e2e/test_word_times.py",
    "e2e/test_idle.py",
    "e2e/test_gradio.py",
    "e2e/test_gradio_tabs.py",
)
OWN_SERVER = "the tests' own server"
"""The unit of the files below, which lock, freeze, kill and break one; in this order, since it is
started again in the second."""
ON_OWN_SERVER = (
    "e2e/test_page_access.py",
    "e2e/test_page_connection.py",
    "e2e/test_continuity.py",
)
TIMED = "timed tests without the shared server"
"""The unit of the files below. In different units, each would wait until it is alone."""
WITH_TIMED_TESTS = (
    "backend/tests/integration/test_cancellation.py",
    "backend/tests/integration/test_pipeline.py",
    "benchmarks/tests/test_noise_guard.py",
)
VLLM = "vLLM in the test's process"
"""The unit of the files below: its imports take ten CPU seconds in each worker."""
IN_PROCESS_VLLM = (
    "backend/tests/integration/test_ar_chunked.py",
    "backend/tests/integration/test_ar_edges.py",
    "backend/tests/integration/test_ar_graph_engine.py",
    "backend/tests/integration/test_ar_latents.py",
    "backend/tests/integration/test_ar_open_text.py",
    "backend/tests/integration/test_ar_rows.py",
    "backend/tests/integration/test_ar_runners.py",
    "backend/tests/integration/test_ar_stage.py",
    "backend/tests/integration/test_ar_thinker.py",
    "backend/tests/integration/test_ar_vllm_symbols.py",
    "models/cantata_models/fish_speech/tests/test_mutations.py",
    "models/cantata_models/fish_speech/tests/test_sampling_rules.py",
    "models/cantata_models/fish_speech/tests/test_serving.py",
    "models/cantata_models/fish_speech/tests/test_talker_parity.py",
    "models/cantata_models/moss_tts/tests/test_serving.py",
    "models/cantata_models/moss_tts/tests/test_stage_mutations.py",
    "models/cantata_models/moss_tts/tests/test_stage_sampling.py",
    "models/cantata_models/moss_tts/tests/test_stages.py",
    "models/cantata_models/moss_tts/tests/test_talker_mutations.py",
    "models/cantata_models/moss_tts/tests/test_talker_parity.py",
    "models/cantata_models/moss_tts/tests/test_talker_weights.py",
    "models/cantata_models/qwen25_omni/tests/test_talker.py",
    "models/cantata_models/qwen25_omni/tests/test_talker_mutations.py",
    "models/cantata_models/qwen25_omni/tests/test_thinker_parity.py",
    "models/cantata_models/qwen3_asr/tests/test_parity.py",
    "models/cantata_models/qwen3_omni/tests/test_mutations.py",
    "models/cantata_models/qwen3_omni/tests/test_talker_parity.py",
    "models/cantata_models/qwen3_omni/tests/test_talker_weights.py",
    "models/cantata_models/qwen3_omni/tests/test_thinker_parity.py",
    "models/cantata_models/qwen3_tts/tests/test_mutations.py",
    "models/cantata_models/qwen3_tts/tests/test_open_text.py",
    "models/cantata_models/qwen3_tts/tests/test_sampling_rules.py",
    "models/cantata_models/qwen3_tts/tests/test_serving.py",
    "models/cantata_models/qwen3_tts/tests/test_talker_parity.py",
    "models/cantata_models/solo/tests/test_talker_stage.py",
    "models/cantata_models/text_model/tests/test_chat_builder.py",
    "models/cantata_models/text_model/tests/test_config.py",
    "models/cantata_models/voxcpm2/tests/test_mutations.py",
    "models/cantata_models/voxcpm2/tests/test_parity.py",
    "models/cantata_models/voxcpm2/tests/test_serving.py",
)
UNITS = {
    **dict.fromkeys(ON_SHARED_SERVER, SHARED_SERVER),
    **dict.fromkeys(ON_OWN_SERVER, OWN_SERVER),
    **dict.fromkeys(WITH_TIMED_TESTS, TIMED),
    **dict.fromkeys(IN_PROCESS_VLLM, VLLM),
}
PLACES = {path: place for place, path in enumerate(UNITS)}
STARTS = (
    "e2e/test_page_code.py",  # the shared server
    "e2e/test_first_packet.py",  # the bare model beside it
    "backend/tests/integration/test_cancellation.py",
)
"""Of the units `SHARED_SERVER` and `TIMED`, the files that start what takes long. The timed tests
of all files come right after these: together they wait only once until they are alone, and nothing
starts meanwhile."""


class Turnstile:
    """A lock between processes: many tests at a time, or one alone. While a test waits to run
    alone, no other starts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._gate = (folder / "gate").open("w")
        self._room = (folder / "room").open("w")
        self._held_alone = False

    @contextmanager
    def entered(self, *, alone: bool, next_alone: bool) -> Iterator[None]:
        """For the time of the block.

        Args:
            alone: wait until all others have left, and let none in.
            next_alone: this process's next test runs alone, too. Then no other is let in between:
                most of a timed test's cost is waiting until the others have ended theirs.
        """
        if not self._held_alone:
            self._enter(fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            self._held_alone = alone and next_alone
            if not self._held_alone:
                fcntl.flock(self._room, fcntl.LOCK_UN)

    def _enter(self, kind: int) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, kind)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)


turnstile = pytest.StashKey[Turnstile]()
COMPUTING = 3
"""Workers, for two cores. If there are more, the last runs only what mostly waits: first units of
`_SERVERS`, which the others run only when nothing else is left, then those of `_BROWSERS`. It
collects nothing else."""
_SERVERS = ("backend/tests/unit/api/", "backend/tests/unit/distributed/")
"""Folders of tests of servers without a model, which compute for a third of their time."""
_BROWSERS = ("e2e/",)
_WAITING = ("backend/tests/integration/", *_SERVERS)
"""Folders of tests of running servers."""
_SECONDS = {"e2e/": 35, OWN_SERVER: 100, TIMED: 60, "backend/tests/integration/": 20, "models/": 3}
"""Of a file, roughly, by folder."""
_USUAL_SECONDS = 2
_SPREAD = 0.8
"""The last fifth of the units that compute comes after all that wait, so that the workers finish
together: most of these are short."""


def get_unit(nodeid: str) -> str:
    """The unit of work that a worker receives."""
    path = nodeid.split("::", 1)[0]
    return UNITS.get(path, path)


def _waits(item: pytest.Item) -> bool:
    """Whether most of its time is waiting: for sound that is played, processes, deadlines."""
    return item.nodeid.startswith(_WAITING) or item.get_closest_marker("e2e") is not None


def in_turn(waiting: Sequence[str], computing: Sequence[str]) -> list[str]:
    """All units, so that at any time some worker computes while others wait: with several that
    wait, the cores are idle, and with three that compute, each takes longer."""
    places = dict(zip(computing, _begins(computing), strict=True))
    places |= {
        unit: _SPREAD * begins for unit, begins in zip(waiting, _begins(waiting), strict=True)
    }
    return sorted(places, key=lambda unit: places[unit])


def _begins(units: Sequence[str]) -> list[float]:
    """When each begins, as a share of the time that all take, one after the other."""
    seconds = [
        next((s for folder, s in _SECONDS.items() if unit.startswith(folder)), _USUAL_SECONDS)
        for unit in units
    ]
    return [sum(seconds[:place]) / sum(seconds) for place in range(len(units))]


def _in_order(units: Mapping[str, bool]) -> list[str]:
    """The longest ones first: one that waits and one that computes.

    Args:
        units: in the order of the collection, and whether each mostly waits.
    """
    longest = [unit for unit in (SHARED_SERVER, VLLM) if unit in units]
    rest = [unit for unit in units if unit not in longest]
    waiting = [unit for unit in rest if units[unit]]
    computing = [unit for unit in rest if not units[unit]]
    waiting.sort(key=lambda unit: unit != OWN_SERVER and not unit.startswith("e2e/"))
    computing.sort(key=lambda unit: not unit.startswith("models/"))
    return longest + in_turn(waiting, computing)


def _is_timed(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("timed") is not None


def _place(item: pytest.Item) -> tuple[int, int]:
    path = item.nodeid.split("::", 1)[0]
    starts, timed, others = range(3)
    turn = starts
    if UNITS.get(path) in (SHARED_SERVER, TIMED):
        turn = timed if _is_timed(item) else starts if path in STARTS else others
    return turn, PLACES.get(path, len(PLACES))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's, of each worker
        config.stash[turnstile] = Turnstile(config.rootpath / "artifacts" / "lanes")


def _is_last(worker: str, workers: int) -> bool:
    """Whether it is the one that runs only what mostly waits."""
    return workers > COMPUTING and worker == f"gw{workers - 1}"


def choose_unit(waiting: Sequence[str], *, is_last: bool) -> str | None:
    """The unit that a worker takes of those that are left, if there are more than `COMPUTING`.

    Args:
        waiting: units, in their order.
        is_last: whether the worker runs only what mostly waits.
    """
    of_servers = [unit for unit in waiting if unit.startswith(_SERVERS)]
    others = [unit for unit in waiting if unit not in of_servers]
    of_browsers = [unit for unit in others if unit.startswith(_BROWSERS)]
    preferred = [*of_servers, *of_browsers] if is_last else [*others, *of_servers]
    return next(iter(preferred), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """WHY: to collect all tests is to import most packages, a minute of CPU in each worker."""
    given: Mapping[str, Any] = getattr(config, "workerinput", {})
    if not given or not _is_last(given["workerid"], given["workercount"]):
        return None
    path = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    mine = (*_SERVERS, *_BROWSERS)
    return None if any(path.startswith(s) or s.startswith(path) for s in mine) else True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    """Outside a test's time limit: waiting for other tests does not count."""
    lock = item.config.stash.get(turnstile, None)
    if lock is None:
        return (yield)
    with lock.entered(alone=_is_timed(item), next_alone=_is_timed(nextitem)):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Units as told above, and so the tests of each."""
    if turnstile not in config.stash:
        return
    units: dict[str, bool] = {}
    for item in items:
        unit = get_unit(item.nodeid)
        units[unit] = units.get(unit, False) or _waits(item)
    ranks = {unit: rank for rank, unit in enumerate(_in_order(units))}
    items.sort(key=lambda item: (ranks[get_unit(item.nodeid)], _place(item)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Units in the order of the collection, each to the next worker that is free and for it."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return get_unit(nodeid)

        def schedule(self) -> None:
            super().schedule()
            # Of all that is to run. xdist sets what the slowest worker collected, which may be
            # nothing, and pytest would report that there were no tests.
            session: Any = config.pluginmanager.get_plugin("session")
            session.testscollected = len(self.collection or ())

        def _check_nodes_have_same_collection(self) -> bool:
            last = {
                node: self.registered_collections.pop(node)
                for node in tuple(self.registered_collections)
                if _is_last(node.gateway.id, self.numnodes)
            }
            same: bool = super()._check_nodes_have_same_collection()
            # At the end: the first one's tests are those to run.
            self.registered_collections |= last
            return same

        def _assign_work_unit(self, node: Any) -> None:
            if self.numnodes > COMPUTING:
                is_last = _is_last(node.gateway.id, self.numnodes)
                chosen = choose_unit(tuple(self.workqueue), is_last=is_last)
                if chosen is None:
                    node.shutdown()
                    return
                self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return UnitScheduling(config, log)
