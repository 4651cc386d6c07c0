"""The AR stage kind on stock vLLM: the only package of the backend that imports vLLM."""

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
