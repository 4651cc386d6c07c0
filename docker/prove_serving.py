"""Run an image as an engine would and make it speak; prove.sh calls it with only loopback.

prove_serving.py cpu|cuda BUILDAH-COMMAND... CONTAINER

The CUDA image first has to say that there is no GPU. It speaks on the device of
`backend/tests/pretended_gpu`, which pretends to be one.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

KEY = "a-key-for-this-proof"
BASE = "http://127.0.0.1:8000"
READY_WITHIN_S = 600.0
GONE_WITHIN_S = 60.0
"""A fork server that is still importing ends when it is done."""
TEXT = "The kettle is on."
AUDIBLE = 1000
"""A sample of 16 bits that only speech reaches."""
GPU_WORDS = ("nvidia", "cuda", "triton")
NO_DRIVER = "there is no NVIDIA driver"
ROOT = Path(__file__).parents[1]


def check(holds: bool, what: str) -> None:
    """Print what was seen, or end the proof."""
    if not holds:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}", flush=True)


def raise_loopback() -> None:
    """A new network namespace has `lo`, and it is down (`netdevice(7)`)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sH14x", b"lo", 1)  # IFF_UP
        fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS


def wait_until_healthy(run: list[str], test: list[str], server: subprocess.Popen[bytes]) -> float:
    """Run the image's own health check, as often as an engine would, until it passes; seconds."""
    started = time.monotonic()
    while subprocess.run([*run, *test], capture_output=True).returncode != 0:
        if server.poll() is not None or time.monotonic() - started > READY_WITHIN_S:
            sys.exit("FAILED: the server did not become healthy")
        time.sleep(5)
    return time.monotonic() - started


def speak() -> array.array[int]:
    """One sentence, as samples of 16 bits."""
    body = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with urlopen(Request(f"{BASE}/v1/audio/speech", body, headers), timeout=300) as answer:
        return array.array("h", answer.read())


def server_processes() -> dict[int, tuple[str, int]]:
    """By process id: the name of each of the server's processes, and its user's id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        words = (entry / "cmdline").read_bytes().decode().split("\0")
        name = Path(words[1] if "python" in words[0] else words[0]).name
        if name.startswith("cantata"):
            found[int(entry.name)] = (name, entry.stat().st_uid)
    return found


def read_pins(lines: str) -> set[str]:
    """`name==version`, with each name as PEP 503 has it."""
    pins = (re.split("={2,3}", line) for line in lines.split("\n") if "==" in line)
    return {f"{re.sub('[-_.]+', '-', name).lower()}=={version}" for name, version in pins}


def check_distributions(device: str, installed: set[str]) -> None:
    """Nothing for a GPU in the one image, all that was pinned in the other."""
    if device == "cpu":
        unwanted = [pin for pin in installed if any(word in pin for word in GPU_WORDS)]
        check(not unwanted, f"{len(installed)} distributions, none for a GPU {unwanted or ''}")
        return
    missing = read_pins((ROOT / "requirements/cuda.txt").read_text()) - installed
    check(not missing, f"{len(installed)} distributions, with all pins {missing or ''}")


def check_refusal(run: list[str], command: list[str]) -> None:
    """Where there is no GPU, the command ends and says so."""
    ended = subprocess.run([*run, *command], capture_output=True, text=True)
    said = [line for line in ended.stderr.splitlines() if NO_DRIVER in line]
    check(ended.returncode == 1 and len(said) == 1, f"without a GPU it says so: {said}")


def main(device: str, buildah: list[str], container: str) -> None:
    """Every check, in the order of a container's life."""
    raise_loopback()
    inspected = subprocess.run([*buildah, "inspect", container], check=True, capture_output=True)
    config: dict[str, Any] = json.loads(inspected.stdout)["Docker"]["config"]
    base = [*buildah, "run", "--isolation", "chroot"]
    run = [*base, container, "--"]

    listed = subprocess.run(
        [*run, "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    check_distributions(device, read_pins(listed.stdout))

    options = ["--env", f"CANTATA_API_KEYS={KEY}"]
    if device == "cuda":
        check_refusal([*base, *options, container, "--"], config["Cmd"])
        options += ["--volume", f"{ROOT}/backend/tests:/tests:ro"]
        options += ["--env", "PYTHONPATH=/tests/pretended_gpu:/tests"]
    server = subprocess.Popen([*base, *options, container, "--", *config["Cmd"]])
    took_s = wait_until_healthy(run, config["Healthcheck"]["Test"][1:], server)
    check(True, f"healthy after {took_s:.0f} s")
    processes = server_processes()
    check(all(user > 0 for _, user in processes.values()), f"no process is root's: {processes}")

    samples = speak()
    peak = max(map(abs, samples), default=0)
    check(peak > AUDIBLE, f"{TEXT!r}: {len(samples)} samples, peak {peak} of 32767")

    os.kill(min(processes), signal.SIGTERM)
    server.wait(timeout=120)
    deadline = time.monotonic() + GONE_WITHIN_S
    while server_processes() and time.monotonic() < deadline:
        time.sleep(0.5)
    check(not server_processes(), f"SIGTERM ended every process {server_processes() or ''}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:-1], sys.argv[-1])
