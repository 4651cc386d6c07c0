"""Write `cuda.txt`, what the CUDA image installs: `make lock-cuda`.

Unlike the other files it is not read from an installation, since no GPU is needed to write it: pip
resolves it from the packages' metadata and installs nothing. The image has the extras of the CPU
image (`lock.RUNTIME_EXTRAS`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from lock import ALONE, RUNTIME_EXTRAS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CUDA_TORCH = "torch===2.13.0"
"""Arbitrary equality (PEP 440), which a CPU build (2.13.0+cpu) does not match."""


def list_wanted(folder: Path) -> tuple[list[str], list[str]]:
    """Requirements to resolve with all that they need, and those that are installed alone."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ("cuda", *(name for name in RUNTIME_EXTRAS if name != "cpu"))
    lines = [line for name in extras for line in project["optional-dependencies"][name]]
    alone = [line for line in lines if canonicalize_name(Requirement(line).name) in ALONE]
    needed = [line for line in lines if line not in alone]
    return [str(folder), CUDA_TORCH, *needed], alone


def resolve(*arguments: str) -> dict[str, str]:
    """What pip would install, with its version."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    dry = ["install", "--dry-run", "--ignore-installed", "--report", "-"]
    report = subprocess.run([*pip, *dry, *arguments], check=True, stdout=subprocess.PIPE)
    found = [item["metadata"] for item in json.loads(report.stdout)["install"]]
    return {canonicalize_name(it["name"]): it["version"] for it in found}


def main() -> None:
    """Resolve and write."""
    folder = Path(__file__).parent
    needed, alone = list_wanted(folder.parent)
    versions = resolve(*needed) | resolve("--no-deps", *alone)
    del versions["cantata"]
    pins = [f"{name}=={version}" for name, version in sorted(versions.items())]
    pins = [CUDA_TORCH if pin.startswith("torch==") else pin for pin in pins]
    head = "# Written by requirements/lock_cuda.py (`make lock-cuda`); install with --no-deps.\n"
    (folder / "cuda.txt").write_text(head + "\n".join(pins) + "\n", encoding="utf-8")
    print(f"cuda.txt: {len(pins)} pins")


if __name__ == "__main__":
    main()
