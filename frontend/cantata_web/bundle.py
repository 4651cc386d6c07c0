"""Links the page's ES modules into one script: a browser then fetches one file, not forty.

It understands what the modules use, and raises BundleError for anything else: at the start of a
line `import { names } from "./path.js";`, and `export` before a class, a function or a constant.
Each module becomes a function, so its names stay its own, and its lines stay as they are, but for
comments on lines of their own, which are left out: browsers would fetch them for nothing.
`import("./path.js")` anywhere in a line loads a part: a script of its own that is fetched when it
is first needed, and shares the modules of the script that loads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from posixpath import dirname, join, normpath

_COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:.|\n)*?\*/)$", re.MULTILINE)
_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function\*?) (\w+))", re.MULTILINE)
_LOCATION = re.compile(r'new URL\("([^"]+)", import\.meta\.url\)')
_PART = re.compile(r'\bimport\("(\.{1,2}/[^"]+)"\)')
_OTHERWISE = re.compile(r"^(?:import|export)\b.*|.*(?:\bimport\(|\bimport\.meta\b).*", re.MULTILINE)

Rewrite = Callable[[str], str]
"""Makes another source of a module's."""


class BundleError(Exception):
    """A module cannot be linked."""


def link(folder: Path, entry: str, urls: Mapping[str, str], rewrite: Rewrite = str) -> str:
    """One script that runs the module `entry` after all that it imports.

    Args:
        folder: what the modules' names are relative to.
        urls: JavaScript expressions for the URLs of modules that others load as scripts of their
            own, with `new URL("name.js", import.meta.url)` or `import("./name.js")`.
        rewrite: is applied to each module first.

    Raises:
        BundleError: a module is missing, imports itself through others, or uses a form of
            `import` or `export` that is not understood.
    """
    linker = _Linker(folder, urls, rewrite=rewrite)
    linker.add(entry, ())
    return '"use strict";\nconst $modules = {};\n' + linker.join("=")


def link_part(
    folder: Path, entry: str, urls: Mapping[str, str], shared: Set[str], rewrite: Rewrite = str
) -> str:
    """A script whose `open` runs the module `entry` beside those of the script that loads it.

    Args:
        folder: as for `link`.
        entry: the module whose exports `open` returns.
        urls: as for `link`.
        shared: names of the modules that the other script has. Modules that two parts import run
            once, too, although both scripts have them.
        rewrite: as for `link`.

    Raises:
        BundleError: as `link`.
    """
    linker = _Linker(folder, urls, shared, rewrite)
    linker.add(entry, ())
    linked = linker.join("??=")
    return f'export const open = ($modules) => {{\n{linked}return $modules["{entry}"];\n}};\n'


def list_modules(folder: Path, entry: str) -> Set[str]:
    """Names of the modules that `link` puts into one script. Raises BundleError: a module is
    missing."""
    found: dict[str, str] = {}
    waiting = [(entry, entry)]
    while waiting:
        importer, name = waiting.pop()
        if name in found:
            continue
        found[name] = _read(folder, name, importer)
        waiting += [(name, _resolve(name, path)) for _, path in _IMPORT.findall(found[name])]
    return found.keys()


class _Linker:
    def __init__(
        self,
        folder: Path,
        urls: Mapping[str, str],
        shared: Set[str] = frozenset(),
        rewrite: Rewrite = str,
    ) -> None:
        self._folder = folder
        self._urls = urls
        self._shared = shared
        self._rewrite = rewrite
        self.linked: dict[str, str] = {}

    def join(self, assign: str) -> str:
        return "".join(
            f'$modules["{name}"] {assign} {function};\n' for name, function in self.linked.items()
        )

    def add(self, name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise BundleError(f"modules import each other: {' -> '.join((*importers, name))}")
        if name in self.linked or name in self._shared:
            return
        source = _read(self._folder, name, (name, *importers)[-1])
        for _, path in _IMPORT.findall(source):
            self.add(_resolve(name, path), (*importers, name))
        self.linked[name] = self._wrap_as_function(name, self._rewrite(source))

    def _wrap_as_function(self, name: str, source: str) -> str:
        exported = ", ".join(_EXPORT.findall(source))

        def imported(found: re.Match[str]) -> str:
            names = found[1].replace(" as ", ": ")
            return f'const {{{names}}} = $modules["{_resolve(name, found[2])}"];'

        def located(found: re.Match[str]) -> str:
            loaded = _resolve(name, found[1])
            if loaded not in self._urls:
                raise BundleError(f"{name} loads {loaded}, which has no URL")
            return self._urls[loaded]

        def opened(found: re.Match[str]) -> str:
            return f"import({located(found)}).then((part) => part.open($modules))"

        source = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source)
        text = _EXPORT.sub("", _IMPORT.sub(imported, source))
        if left := _OTHERWISE.search(_PART.sub("", _LOCATION.sub("", text))):
            raise BundleError(f"{name}: cannot link {left[0].strip()!r}")
        text = _PART.sub(opened, _LOCATION.sub(located, text))
        return f"(() => {{\n{text}return {{ {exported} }};\n}})()"


def _read(folder: Path, name: str, importer: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BundleError(f"{importer} imports {name}: no such file") from error


def _resolve(importer: str, path: str) -> str:
    return normpath(join(dirname(importer), path))
