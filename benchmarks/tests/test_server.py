"""Ports and processes of the servers that benchmarks and tests start."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cantata_bench import server
from cantata_bench.server import end, free_port

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"


@pytest.mark.skipif(not EPHEMERAL.exists(), reason="Linux tells which ports it gives to clients")
def test_no_other_process_is_given_a_free_port_before_it_is_taken() -> None:
    assert free_port() < int(EPHEMERAL.read_text().split()[0])


def test_callers_with_the_same_seed_get_different_ports() -> None:
    ports = set()
    for _ in range(4):
        random.seed(0)
        ports.add(free_port())
    assert len(ports) > 1


def test_a_taken_port_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(server, "_PORTS", range(port, port + 1))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        with pytest.raises(RuntimeError, match=f"no TCP port from {port} to {port} is free"):
            free_port()
    assert free_port() == port


@pytest.mark.parametrize(
    ("code", "status"), [("print(flush=True); input()", signal.SIGTERM), (DEAF, signal.SIGKILL)]
)
def test_a_process_is_asked_to_end_and_then_made_to(
    monkeypatch: pytest.MonkeyPatch, code: str, status: signal.Signals
) -> None:
    if status is signal.SIGKILL:
        monkeypatch.setattr(server, "STOP_DEADLINE_S", 0.1)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end(process)
        assert process.returncode == -status


STOPPED_RUN = """
import signal
from cantata_bench.cli import app

@app.command()
def measure() -> None:
    try:
        print("started", flush=True)
        signal.pause()
    finally:
        print("ended its server", flush=True)

app(["measure"])
"""


def test_a_run_that_is_terminated_ends_its_servers() -> None:
    command = [sys.executable, "-c", STOPPED_RUN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.terminate()
        assert process.stdout.read() == "ended its server\n"
    assert process.returncode == 128 + signal.SIGTERM
