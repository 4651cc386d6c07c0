"""Whether this machine has what a deployment requires, checked without importing torch."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

from cantata.config import Deployment
from cantata.contract.data.errors import ConfigError
from cantata.utils.gpus import list_gpus

_DRIVER = "libcuda.so.1"


def check_devices(deployment: Deployment) -> None:
    """Report early what a stage of this machine would otherwise find only after its imports.

    Raises:
        ConfigError: a stage wants a GPU that is not there, or torch or the driver for one is not
            installed.
    """
    here = {name: stage for name, stage in deployment.stages.items() if stage.host is None}
    on_gpu = {name: stage for name, stage in here.items() if stage.on_gpu}
    problem = _find_missing_for_cuda() if on_gpu else None
    if problem is not None:
        stages = " and ".join(f"stage {name!r}" for name in on_gpu)
        raise ConfigError(f"{stages}: device 'cuda': {problem}; valid here: 'cpu'")
    count = len(visible) if on_gpu and (visible := list_gpus()) is not None else None
    for name, stage in on_gpu.items():
        if count is not None and (stage.gpu or 0) >= count:
            valid = ", ".join(["'cpu'", *(f"'cuda:{index}'" for index in range(count))])
            raise ConfigError(f"stage {name!r}: device {stage.device!r}; valid here: {valid}")
        if count is not None and (stage.gpu or 0) + stage.num_gpus > count:
            raise ConfigError(
                f"stage {name!r}: {stage.num_gpus} ranks need as many GPUs from {stage.device!r} "
                f"on; {count} are visible"
            )


def _find_missing_for_cuda() -> str | None:
    if not _torch_has_cuda():
        return "the installed torch is built for CPUs alone"
    try:
        ctypes.CDLL(_DRIVER)
    except OSError as error:
        return f"there is no NVIDIA driver ({error})"
    return None


def _torch_has_cuda() -> bool:
    """What `torch.version.cuda` says, read from its source: importing torch takes seconds."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    return not any(
        line.startswith("cuda") and line.partition("=")[2].strip() == "None"
        for line in source.splitlines()
    )
