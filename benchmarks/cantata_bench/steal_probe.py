"""A process that only sleeps, and watches the machine: a script, which `noise_guard.observed` runs.

It writes an empty line when it begins. When its input closes, it writes two times in seconds: how
late it woke up at worst, and the most that the hypervisor took of all cores within `WINDOW_S`.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections import deque

NAP_S = 0.005
LOOK_EVERY = 4
"""Naps between two looks at the hypervisor's share."""
WINDOW_S = 0.2


def stolen_s() -> float:
    """CPU time that the hypervisor gave to other machines; 0 where the system does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as stat:
            return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def main() -> None:
    """See the module."""
    late_s = burst_s = 0.0
    looks: deque[float] = deque([stolen_s()], maxlen=round(WINDOW_S / (NAP_S * LOOK_EVERY)))
    naps = 0
    print(flush=True)
    while True:
        due_s = time.monotonic() + NAP_S
        if select.select([sys.stdin], [], [], NAP_S)[0]:
            break
        late_s = max(late_s, time.monotonic() - due_s)
        naps += 1
        if naps % LOOK_EVERY == 0:
            looks.append(stolen_s())
            burst_s = max(burst_s, looks[-1] - looks[0])
    print(late_s, burst_s)


if __name__ == "__main__":
    main()
