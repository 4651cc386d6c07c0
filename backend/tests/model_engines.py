"""A pytest plug-in for tests that run a model's real stages in the test's process.

A model brings scenarios, what its reference made of them, and faults. Here is what all need beside
that: the mark `vllm`, stages that are started once for each checkpoint and closed in the end, how
they are run, and arrays of golden files. Faults are in `faults` and `source_faults`, requests to a
served model in `speech_client`.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

K = TypeVar("K")


class _Loaded(Protocol):
    @property
    def stages(self) -> Sequence[Any]: ...


L = TypeVar("L", bound=_Loaded)


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark."""
    config.addinivalue_line(
        "markers",
        "vllm: an integration test with an engine, whose start-up warns of deprecated functions",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Do what the mark says."""
    if item.get_closest_marker("vllm"):
        item.add_marker("integration")
        for warning in ("DeprecationWarning", "FutureWarning"):
            item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning}"))


class Checkpoints(ABC, Generic[K, L]):
    """Stages by checkpoint, started on first use. What is loaded lists them as `stages`.

    Args:
        folder: for the checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded: dict[K, L] = {}

    @abstractmethod
    def load(self, key: K) -> L:
        """Write a checkpoint, and start its stages."""

    def get(self, key: K) -> L:
        """Return a checkpoint's stages."""
        if key not in self._loaded:
            self._loaded[key] = self.load(key)
        return self._loaded[key]

    def close(self) -> None:
        """Shut down every engine; callers must hold no references to them."""
        stages = [stage for loaded in self._loaded.values() for stage in loaded.stages]
        # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
        with patch.object(gc, "collect"):
            for stage in stages:
                assert set(stage.get_counts().values()) <= {0}, "a request was left"
                stage.close()


C = TypeVar("C", bound=Checkpoints[Any, Any])


def checkpoints_fixture(kind: type[C], scope: Literal["module", "package"] = "package") -> Any:
    """Make a fixture of all tests of a module or package: an engine takes seconds to start."""

    @pytest.fixture(scope=scope)
    def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[C]:
        made = kind(tmp_path_factory.mktemp(kind.__name__))
        yield made
        made.close()

    return checkpoints


def step(stage: Any) -> Sequence[Any]:
    """Take a step in which no request fails; return its chunks."""
    result = stage.step()
    assert not result.failures, result.failures
    return result.chunks  # type: ignore[no-any-return]


def run(stage: Any) -> list[Any]:
    """Take steps until all requests have ended; return their chunks."""
    made: list[Any] = []
    while stage.has_work():
        made += step(stage)
    return made


def join(chunks: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """[T, Q] codes, or [T, E] rows, that are heard, by request id."""
    parts: dict[str, list[NDArray[Any]]] = {}
    for chunk in chunks:
        heard = chunk.payload.values[chunk.payload.context_frames :]
        parts.setdefault(chunk.request_id, []).append(heard)
    return {name: np.concatenate(each) for name, each in parts.items()}


def decode(codec: Any, chunks: Sequence[Any]) -> NDArray[np.float32]:
    """Run a codec stage on one request's chunks; return [N, C] samples."""
    codec.add(chunks[0].request_id, None, batch=False)
    made = []
    for chunk in chunks:
        codec.receive([chunk])
        made += run(codec)
    return np.concatenate([chunk.payload.samples for chunk in made])


@contextmanager
def watched(owner: Any, name: str, what: Callable[..., Any]) -> Iterator[list[Any]]:
    """Collect something of every call of a method.

    Args:
        owner: an object, or a class.
        name: of the method.
        what: takes the method's result, then its arguments.
    """
    seen: list[Any] = []
    method = getattr(owner, name)

    def watching(*given: Any) -> Any:
        result = method(*given)
        seen.append(what(result, *given))
        return result

    with patch.object(owner, name, watching):
        yield seen


def watch_scores(talker: Any) -> Any:
    """Collect the scores of code 0 of the only request, [V] a step: a context."""
    return watched(talker, "compute_logits", lambda scores, hidden: scores[0].clone())


def assert_pixels(ours: NDArray[np.uint8], theirs: NDArray[np.uint8], share: float) -> None:
    """Check that pictures are equal but for rounding: this share of values, by one each."""
    np.testing.assert_array_equal(ours.shape, theirs.shape)
    apart = np.abs(ours.astype(int) - theirs)
    np.testing.assert_array_less(apart, 2)
    np.testing.assert_array_less((apart > 0).mean(), share)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class Goldens:
    """What a reference made, by scenario: calling it returns one array.

    Args:
        path: of an .npz, whose arrays are called `<scenario>/<what>`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, scenario: _Named, what: str) -> NDArray[Any]:
        """Return one array of a scenario."""
        return self.arrays[f"{scenario.name}/{what}"]

    @cached_property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """All arrays."""
        with np.load(self._path) as file:
            return dict(file)
