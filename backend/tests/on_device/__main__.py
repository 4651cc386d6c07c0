"""Checks models on the pretended device, in a process of its own.

vLLM decides once for each process which kernels and process groups there are, and other tests of a
worker need others.

    python -m on_device NAME...

prints a JSON object: each name as it was given, and why that model failed; null: it did not.
`NAME:graphs` has that engine for AR stages.
"""

from __future__ import annotations

import json
import sys
import tempfile
import traceback
from pathlib import Path

from cantata.config.plugins import LocatedModel, load_plugins
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plugin import ModelPlugin
from on_device.check import check_on_device

ON_THE_CPU_ALONE = "runs on the CPU"
"""In the error of a model that has no network in torch."""


def check_plugin(plugin: ModelPlugin, folder: Path, engine: str) -> None:
    """Check a model with its embedded weights, or with random ones that are written to a folder.

    Args:
        engine: of its AR stages.

    Raises:
        AssertionError: see `check_on_device`.
    """
    checkpoint = plugin.embedded_checkpoint
    if checkpoint is None:
        assert plugin.write_random_checkpoint is not None
        plugin.write_random_checkpoint(folder)
        checkpoint = folder
    try:
        check_on_device(LocatedModel(plugin, checkpoint), engine)
    except ConfigError as error:
        if ON_THE_CPU_ALONE not in str(error):
            raise


def find_failure(plugin: ModelPlugin, engine: str) -> str | None:
    """Return a failed check's traceback."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_plugin(plugin, Path(folder), engine)
        except Exception:
            return traceback.format_exc()
    return None


if __name__ == "__main__":
    plugins = load_plugins()
    failures = {}
    for given in sys.argv[1:]:
        name, _, chosen = given.partition(":")
        failures[given] = find_failure(plugins[name], chosen or "vllm")
    # vLLM and torch write to standard output, too: the answer is its last line.
    print(f"\n{json.dumps(failures)}")
