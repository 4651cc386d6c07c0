"""Write `cuda.txt`, what the CUDA image installs: `make lock-cuda`.

Unlike the other files it is not read from an installation, since no GPU is needed to write it: pip
resolves it from the packages' metadata and installs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

EXTRAS = "cuda,hibari,omni,realtime,web,wyoming"
CUDA_TORCH = "torch===2.13.0"
"""Arbitrary equality (PEP 440), which a CPU build (2.13.0+cpu) does not match."""


def main() -> None:
    """Resolve and write."""
    folder = Path(__file__).parent
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    resolve = ["install", "--dry-run", "--ignore-installed", "--report", "-"]
    wanted = [f"{folder.parent}[{EXTRAS}]", CUDA_TORCH]
    report = subprocess.run([*pip, *resolve, *wanted], check=True, stdout=subprocess.PIPE)
    found = [item["metadata"] for item in json.loads(report.stdout)["install"]]
    versions = {canonicalize_name(it["name"]): it["version"] for it in found}
    del versions["cantata"]
    pins = [f"{name}=={version}" for name, version in sorted(versions.items())]
    head = "# Written by requirements/lock_cuda.py (`make lock-cuda`); install with --no-deps.\n"
    (folder / "cuda.txt").write_text(head + "\n".join(pins) + "\n", encoding="utf-8")
    print(f"cuda.txt: {len(pins)} pins")


if __name__ == "__main__":
    main()
