"""For every test: side by side or alone, how long each took, and the same examples in every run."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

pytest_plugins = ["lanes", "tiers", "durations", "stage_imports", "model_engines"]

# A test fails for what has changed, not by luck; `make fuzz` looks for new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """An empty folder as the authorities that HTTP clients trust, here and in processes of the
    tests. WHY: each client would read 140 certificates, of which plain HTTP needs none, in 25 ms of
    CPU; a thousand tests have clients."""
    folder = TemporaryDirectory(prefix="no-authorities-")
    config.add_cleanup(folder.cleanup)
    os.environ["SSL_CERT_DIR"] = folder.name
    os.environ.pop("SSL_CERT_FILE", None)
    if hasattr(config, "workerinput"):
        # A worker of `-n` has reported everything. To free its two gigabytes one object after the
        # other takes seconds, for which the run would wait.
        atexit.register(os._exit, 0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """WHY without garbage collection: every worker imports all tests and most of the packages, and
    searching all that for garbage again and again takes a third of the time. It stays to the end,
    so later searches skip it too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# At the very end, since extensions report what is never freed as leaked. WHY not whenever vLLM asks
# for it: it ends each engine with two searches of a million objects, 0.8 s of CPU.
atexit.register(gc.unfreeze)
gc.unfreeze = lambda: None
