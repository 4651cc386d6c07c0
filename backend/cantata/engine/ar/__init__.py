"""The AR stage kind on stock vLLM: the only package of the backend that imports vLLM.

A step, from the outside in: `stage` (requests in, frames out) calls `engine` (vLLM's own
scheduler and step), whose runner has the hooks of `runner_v1` (CPU) or `runner_v2` (CUDA); both
ask `talker_step` for input rows and frames, which it makes from `request_state` and `sampling`.
`served_model` makes a plug-in's class known to vLLM, `frame_output` is how frames leave it,
`environment` what it reads from the process, `vllm_symbols` what of it must not move.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from cantata.config import ArDeployment
from cantata.contract.errors import ConfigError
from cantata.contract.stage import Stage
from cantata.engine.ar.environment import imports_exempt_from_collection, prepare_environment


def build_stage(factory: str, checkpoint: Path, deployment: ArDeployment) -> Stage:
    """Load a talker and start its engine in this process.

    Args:
        factory: `package.module:Class` of a vLLM model class that implements
            `contract.talker.Talker`.
        checkpoint: the model's folder.
        deployment: how it is served.

    Returns:
        The stage, ready for requests.

    Raises:
        ConfigError: no such class, or a checkpoint or deployment that vLLM refuses.
    """
    prepare_environment()
    module, _, name = factory.partition(":")
    with imports_exempt_from_collection():
        # vLLM reads the environment when it is imported, and all of these import it.
        from cantata.engine.ar.served_model import register_talker
        from cantata.engine.ar.stage import ArStage

        try:
            talker = getattr(importlib.import_module(module), name)
        except (ModuleNotFoundError, AttributeError) as error:
            raise ConfigError(f"no talker class at {factory!r}: {error}") from error
    architecture = register_talker(factory, talker)
    return ArStage(architecture, checkpoint, deployment)
