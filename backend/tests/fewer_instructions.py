"""Runs tests again with the matrix libraries limited to fewer of this CPU's instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

SMALLER_SETS = {
    "avx2": {
        "FBGEMM_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "avx512_256": {
        "FBGEMM_ENABLE_INSTRUCTIONS": "AVX512_256",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
}
"""What each library may use. MKL reads its variable on Intel's CPUs only."""

with_fewer_instructions = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512",
    reason="this CPU has nothing that could be left out",
)


def run_again(tests: Sequence[Path], selected: str, smaller: str) -> None:
    """Fail unless these tests pass in a new process: libraries read the variables once.

    Args:
        tests: files.
        selected: which of their tests, as pytest's -k; never the one that calls this.
        smaller: of `SMALLER_SETS`.
    """
    again = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", selected, *tests],
        env=os.environ | SMALLER_SETS[smaller],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert again.returncode == 0, again.stdout[-4000:]
