"""Replicas over fake services, and an edge of theirs, in the test's own event loop."""

from __future__ import annotations

import sys
from pathlib import Path

# The fake service stands beside the api's tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "api"))
sys.path.insert(0, str(Path(__file__).parent))
