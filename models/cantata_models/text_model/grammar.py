"""Grammars that answers are held to, compiled by xgrammar in a process of their own.

WHY a process: a schema of a thousand optional properties takes 10 GB and a minute, and nothing in
the library stops before. A process has limits of memory and of CPU time, and can be ended.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock

from cachetools import LRUCache

from cantata.contract.data.errors import InvalidRequest, RequestFailed

MAX_WHITESPACE = 8
"""Most blanks and line breaks in a row in JSON: small models may write nothing else for long."""
JSON, TAG = "json", "tag"
COMPILE_CPU_S = 5
COMPILE_MEMORY = 1 << 30
"""Bytes, beside what the process has before."""
MAX_COMPILED = 16 << 20
"""Bytes. A stage reads one of this size in a fifth of a second, once."""
_KEPT = 64 << 20
_KEPT_REFUSALS = 256
_WAIT_S = 120.0
"""For a process that others go before."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer may be."""

    kind: str
    """`JSON`: a JSON Schema; `TAG`: one of xgrammar's structural tags."""
    text: str
    """JSON."""
    param: str
    """The request's field that it was made of."""


class GrammarCompiler:
    """Compiles grammars for one checkpoint, and keeps the last ones.

    Safe to call from several threads.

    Args:
        vocabulary: V, the model's scores for a token.
        ends: the tokens that end an answer, at least one.
    """

    def __init__(self, checkpoint: Path, vocabulary: int, ends: tuple[int, ...]) -> None:
        self._arguments = (str(checkpoint), str(vocabulary), ",".join(map(str, ends)))
        self._compiled = LRUCache[Grammar, bytes](_KEPT, getsizeof=len)
        self._refused = LRUCache[Grammar, str](_KEPT_REFUSALS)
        self._process: _Process | None = None
        self._lock = Lock()

    def find(self, grammar: Grammar) -> bytes | None:
        """Return a compiled grammar that is kept. Raises InvalidRequest: it was refused before."""
        if (refusal := self._refused.get(grammar)) is not None:
            raise InvalidRequest(refusal, grammar.param)
        return self._compiled.get(grammar)

    def compile(self, grammar: Grammar) -> bytes:
        """Return the grammar as a stage reads it. It takes milliseconds, the first four seconds.

        Raises:
            InvalidRequest: it is none, or takes too much to compile.
            RequestFailed: the compiler's process does not answer.
        """
        with self._lock:
            if (kept := self.find(grammar)) is not None:
                return kept
            answer = self._ask(grammar)
            refusal = answer if isinstance(answer, str) else _find_excess(answer)
            if refusal is not None:
                self._refused[grammar] = f"{grammar.param}: {refusal}"
                raise InvalidRequest(f"{grammar.param}: {refusal}", grammar.param)
            assert isinstance(answer, bytes)
            self._compiled[grammar] = answer
            return answer

    def _ask(self, grammar: Grammar) -> bytes | str:
        """Return it compiled, or why it cannot be."""
        if self._process is None:
            self._process = _Process(self._arguments)
        try:
            return self._process.ask(grammar)
        except (EOFError, OSError):
            self._process.end()
            self._process = None
            return (
                f"it takes more than {COMPILE_CPU_S} s or {COMPILE_MEMORY >> 20} MiB to compile; "
                "send a simpler schema"
            )
        except TimeoutError:
            self._process.end()
            self._process = None
            raise RequestFailed("the compiler of grammars does not answer") from None


def _find_excess(compiled: bytes) -> str | None:
    if len(compiled) <= MAX_COMPILED:
        return None
    return (
        f"compiled, it has {len(compiled) >> 20} MiB; at most {MAX_COMPILED >> 20} are held; "
        "send a schema with fewer properties, or fewer tools to choose from"
    )


class _Process:
    """The compiler's process. It ends when this is collected."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            child = subprocess.Popen(
                [
                    *(sys.executable, "-m", "cantata_models.text_model.grammar_process"),
                    *(str(theirs.fileno()), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=_build_environment(os.environ),
            )
        connection = Connection(ours.detach())
        self._connection = connection
        self.end = weakref.finalize(self, _end, connection, child)

    def ask(self, grammar: Grammar) -> bytes | str:
        """Return the grammar compiled, or why it cannot be.

        Raises:
            EOFError, OSError: the process has ended.
            TimeoutError: it does not answer.
        """
        self._connection.send((grammar.kind, grammar.text))
        if not self._connection.poll(_WAIT_S):
            raise TimeoutError
        answer: bytes | str = self._connection.recv()
        return answer


def _build_environment(own: Mapping[str, str]) -> dict[str, str]:
    """It computes on one core, whatever its libraries think."""
    return {**own, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def _end(connection: Connection, child: subprocess.Popen[bytes]) -> None:
    connection.close()
    child.kill()
    child.wait()
