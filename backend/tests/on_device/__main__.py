"""Checks models on the pretended device, in a process of its own.

vLLM decides once for each process which kernels and process groups there are, and other tests of a
worker need others.

    python -m on_device NAME...

prints a JSON object: each model's name, and why it failed; null: it did not.
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


def check_plugin(plugin: ModelPlugin, folder: Path) -> None:
    """Check a model with its embedded weights, or with random ones that are written to a folder.

    Raises:
        AssertionError: see `check_on_device`.
    """
    checkpoint = plugin.embedded_checkpoint
    if checkpoint is None:
        assert plugin.write_random_checkpoint is not None
        plugin.write_random_checkpoint(folder)
        checkpoint = folder
    try:
        check_on_device(LocatedModel(plugin, checkpoint))
    except ConfigError as error:
        if ON_THE_CPU_ALONE not in str(error):
            raise


def find_failure(plugin: ModelPlugin) -> str | None:
    """Return a failed check's traceback."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_plugin(plugin, Path(folder))
        except Exception:
            return traceback.format_exc()
    return None


if __name__ == "__main__":
    plugins = load_plugins()
    failures = {name: find_failure(plugins[name]) for name in sys.argv[1:]}
    # vLLM and torch write to standard output, too: the answer is its last line.
    print(f"\n{json.dumps(failures)}")
