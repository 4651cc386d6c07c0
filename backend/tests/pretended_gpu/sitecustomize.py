"""With this folder and `backend/tests` on PYTHONPATH, a server's GPU is the pretended device.

Python imports a module of this name wherever it starts, so also in stages, which are spawned. The
server finds a driver, and a stage that is deployed on `cuda` is built and run on `gpu:0` of
`pretended_device`; all else is the server's own code.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PRETENDING = ExitStack()
"""Until the process ends: what leaves a context's end to the garbage collection ends it at once."""


def find_a_driver(devices: ModuleType) -> None:
    """Change `cantata.pipeline.devices`: nothing is missing for CUDA."""
    devices.__dict__["_find_missing_for_cuda"] = lambda: None


def build_on_pretended_device(launch: ModuleType) -> None:
    """Change `cantata.stages.process.launch`. A process whose stage is on a GPU pretends from then
    on, in the thread that builds and runs the stage."""
    build = launch.build_stage

    def build_there(spec: Any, checkpoint: Any, deployment: Any) -> Any:
        if not deployment.on_gpu:
            return build(spec, checkpoint, deployment)
        from pretended_device import device, pretended

        print(f"stage {spec.name!r} is on a pretended GPU", file=sys.stderr)
        _PRETENDING.enter_context(pretended())
        return build(spec, checkpoint, deployment.model_copy(update={"device": str(device())}))

    launch.__dict__["build_stage"] = build_there


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "cantata.pipeline.devices": find_a_driver,
    "cantata.stages.process.launch": build_on_pretended_device,
}


class ChangingFinder(MetaPathFinder):
    """Changes modules when they are imported, so that no process imports more than it would."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own, for one that is to be changed; None: as if this were not here."""
        change = _CHANGES.pop(fullname, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(fullname)
        assert spec is not None, fullname
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        loader.exec_module = execute_and_change
        return spec


sys.meta_path.insert(0, ChangingFinder())
