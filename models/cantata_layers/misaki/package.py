"""The parts of the package hibari-tts that read text, without the rest of it.

WHY not `import hibari.g2p`: that imports the package's sound, too, and with it SciPy where it is
installed, which takes a fifth of the time in which `cantata say` speaks a sentence.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_NAME = "cantata_layers.misaki._hibari_g2p"


@cache
def find_package() -> Path:
    """The folder of the installed package. Raises ModuleNotFoundError: it is not installed."""
    spec = find_spec("hibari")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'hibari'", name="hibari")
    return Path(spec.origin).parent


def find_assets() -> Path:
    """The folder of the package's lexicons and networks. Raises ModuleNotFoundError: the package is
    not installed."""
    return find_package() / "assets"


def load_package_g2p(submodule: str | None = None) -> ModuleType:
    """The package's `g2p`, or one of the modules in it. Raises ModuleNotFoundError: the package is
    not installed."""
    if _NAME not in sys.modules:
        folder = find_package() / "g2p"
        spec = spec_from_file_location(
            _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[_NAME] = module
        spec.loader.exec_module(module)
    return import_module(_NAME if submodule is None else f"{_NAME}.{submodule}")
