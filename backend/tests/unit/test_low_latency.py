"""What the kernel says of a process whose loop asked for short slices."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
PROGRAM = """
import ctypes, json, os, struct, threading
from cantata.utils.low_latency import _ATTRIBUTES, shorten_time_slice
os.nice({nice})
def found():
    buffer = ctypes.create_string_buffer(_ATTRIBUTES.size)
    number = {{"x86_64": 315, "aarch64": 275}}[os.uname().machine]  # sched_getattr(2)
    assert not ctypes.CDLL(None).syscall(number, 0, buffer, _ATTRIBUTES.size, 0)
    _, policy, _, nice, _, slice_ns, _, _ = _ATTRIBUTES.unpack(buffer.raw)
    return policy, nice, slice_ns
seen = [found()]
shorten_time_slice()
seen.append(found())
thread = threading.Thread(target=lambda: seen.append(found()))
thread.start()
thread.join()
print(json.dumps(seen))
"""


@pytest.mark.skipif(KERNEL < (6, 12), reason="this kernel has no slices of a thread's own")
@pytest.mark.parametrize("nice", [0, 3])
def test_the_loops_thread_alone_has_short_slices_and_its_niceness(nice: int) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(nice=nice)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    before, after, thread = json.loads(answer.stdout)
    assert before[:2] == after[:2] == thread[:2] == [os.SCHED_OTHER, nice]
    assert after[2] == 100_000
    assert thread[2] == before[2] > after[2]
