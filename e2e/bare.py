"""The bare pipeline beside a server: times a first packet for each line that it reads.

    python -m e2e.bare

No server, no sockets, no other requests: what the model itself takes. `BareModel` drives it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cantata.contract.data.request import SpeechRequest
from cantata_bench.baseline import load_bare

READY = "ready"


def main() -> None:
    """Answers each text on stdin with the seconds to its first sound."""
    bare, builder = load_bare(None)
    print(READY, flush=True)
    for number, line in enumerate(sys.stdin):
        began = time.perf_counter()
        request = builder.build(f"bare-{number}", SpeechRequest(line.strip(), builder.voices[0].id))
        bare.add(request[0])
        while not bare.step():
            pass
        print(time.perf_counter() - began, flush=True)
        while any(stage.has_work() for stage in bare.stages.values()):
            bare.step()
    bare.close()


@dataclass(frozen=True)
class BareModel:
    """The process of `main`."""

    process: subprocess.Popen[str]

    def first_packet_s(self, text: str) -> float:
        """Seconds from the text to its first sound."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def wait_until_ready(self) -> None:
        """Loading takes seconds."""
        while self._line() != READY:
            pass  # what libraries print

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the bare model ended with {self.process.wait()}")
        return line.strip()


@contextmanager
def bare_model() -> Iterator[BareModel]:
    """A bare model that is loaded, for the time of the block."""
    command = [sys.executable, "-m", "e2e.bare"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        bare = BareModel(process)
        bare.wait_until_ready()
        try:
            yield bare
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)


if __name__ == "__main__":
    main()
