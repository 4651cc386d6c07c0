"""The page's request as Python code, run with OpenAI's SDK: it makes what the page played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .conftest import PYTHON, ROOT, Address
from .listening import decode

pytestmark = pytest.mark.e2e


def test_the_pages_python_code_makes_what_the_page_played(server: Address, tmp_path: Path) -> None:
    page = [PYTHON, "-m", "e2e.page_code", server.http, "python", str(tmp_path)]
    subprocess.run(page, cwd=ROOT, check=True, timeout=180)
    code = (tmp_path / "code").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    samples, _ = decode((tmp_path / "cantata.wav").read_bytes())
    played = np.load(tmp_path / "played.npy")
    assert len(played) > 24_000
    np.testing.assert_array_equal(samples, played)
