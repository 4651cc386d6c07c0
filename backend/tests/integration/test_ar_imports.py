"""What an AR stage's imports cost: the fork server imports vLLM without what no stage uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

IMPORTED = """
import sys
from cantata.stages.ar import imports

assert "vllm.v1.engine.core" in sys.modules
known = {name for name in sys.modules if sys.modules[name] is not None}
print({name for name in imports.OPTIONAL if name in sys.modules})
print(len([name for name in known if name.startswith("torch._inductor.kernel")]))
"""


def test_vllm_is_imported_without_what_no_stage_uses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines() == ["set()", "0"]
