"""Programs of docs/howto, as modules: what a reader copies is what the tests run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from documented import HOWTOS, URL, fill_in, read_block

from .conftest import Address


def load(page: str, label: str, server: Address, folder: Path) -> ModuleType:
    """Import a page's program, with this server's address in the place of the page's."""
    code = read_block(HOWTOS / page, label)
    values = {urlsplit(URL).netloc: urlsplit(server.http).netloc}
    file = folder / label
    file.write_text(fill_in(code, values), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
