"""The process that compiles grammars: a request and an answer at a time, within limits."""

from __future__ import annotations

import os
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import xgrammar

from cantata_models.text_model.grammar import (
    COMPILE_CPU_S,
    COMPILE_MEMORY,
    JSON,
    MAX_WHITESPACE,
)
from cantata_models.text_model.token_guide import load_vocabulary


def compile_grammar(compiler: xgrammar.GrammarCompiler, kind: str, text: str) -> bytes | str:
    """Return a grammar of `grammar.Grammar` as a stage reads it, or why there is none."""
    try:
        if kind == JSON:
            compiled = compiler.compile_json_schema(text, max_whitespace_cnt=MAX_WHITESPACE)
        else:
            compiled = compiler.compile_structural_tag(text)
        return compiled.serialize_json().encode()
    except (RuntimeError, ValueError, MemoryError, RecursionError) as error:
        return _explain(error)


def _explain(error: BaseException) -> str:
    """Return the library's words, without the place in its source."""
    last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    if isinstance(error, MemoryError) or "bad_alloc" in last:
        return f"it takes more than {COMPILE_MEMORY >> 20} MiB to compile; send a simpler schema"
    return last.split(": ", 1)[-1] if "/cpp/" in last else last


def _limit_cpu() -> None:
    """Limit the CPU time from now on; more ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + COMPILE_CPU_S
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _limit_memory() -> None:
    """Limit how much the address space may grow from now on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + COMPILE_MEMORY
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main() -> None:
    """Answer until the other end is closed."""
    descriptor, checkpoint, vocabulary, ends = sys.argv[1:]
    connection = Connection(int(descriptor))
    os.nice(5)  # whoever listens goes first
    own_ends = tuple(map(int, ends.split(",")))
    tokens = load_vocabulary(Path(checkpoint), int(vocabulary), own_ends)
    _limit_memory()
    while True:
        try:
            kind, text = connection.recv()
        except EOFError:
            return
        _limit_cpu()
        # WHY without its cache: the caller keeps what it needs, and limits that.
        compiler = xgrammar.GrammarCompiler(tokens, max_threads=1, cache_enabled=False)
        connection.send(compile_grammar(compiler, kind, text))


if __name__ == "__main__":
    main()
