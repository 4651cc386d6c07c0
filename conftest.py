"""For every test: side by side or alone, how long each took, and the same examples in every run."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["lanes", "durations"]

# A test fails for what has changed, not by luck; `make fuzz` looks for new examples.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("repeatable")
