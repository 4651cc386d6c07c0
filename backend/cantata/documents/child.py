"""The process that reads one document: `python -m cantata.documents.child KIND PATH`.

It has limits on memory and time, may neither use the network nor start programs, and writes JSON
to its standard output: `{"document": ...}` or `{"error": ..., "code": ...}`.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import CantataError, InvalidDocument
from cantata.documents.document import Document, check_document, dump_document
from cantata.documents.plain import decode_text, read_plain
from cantata.documents.web_page import read_html

MAX_MEMORY_BYTES = 1 << 30
MAX_CPU_S = 60
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system")


def main() -> None:
    kind, path = sys.argv[1], Path(sys.argv[2])
    _confine()
    try:
        said = {"document": dump_document(check_document(_read(kind, path)))}
    except CantataError as error:
        said = {"error": error.message, "code": error.code}
    except MemoryError:
        said = _refuse(f"the document takes more than {MAX_MEMORY_BYTES >> 20} MiB of memory")
    except RecursionError:
        said = _refuse("the document is nested too deeply")
    json.dump(said, sys.stdout)


def _read(kind: str, path: Path) -> Document:
    match kind:
        case "epub":
            from cantata.documents.epub import read_epub

            return read_epub(path)
        case "pdf":
            from cantata.documents.pdf import read_pdf

            return read_pdf(path)
        case "html":
            return read_html(decode_text(path.read_bytes()))
        case _:
            return read_plain(path.read_bytes(), kind)


def _confine() -> None:
    """Set the limits; a bad document ends this process at most."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.addaudithook(_watch)


def _watch(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"a document may not cause {event}")


def _refuse(reason: str) -> dict[str, str]:
    return {"error": reason, "code": InvalidDocument.code}


if __name__ == "__main__":
    main()
