"""What several machines cost is compared within a round, and beside a process that does nothing."""

from __future__ import annotations

import socket
import threading

import pytest

from cantata_bench.cluster.byte_proxy import running_proxy
from cantata_bench.cluster.connectors import CarriedLoad
from cantata_bench.cluster.served import EDGE, PROXY, SERVER, MeasuredTurn, Round, ServedLoad
from cantata_bench.cluster.tables import served_table
from cantata_bench.cluster.transports import TRANSPORTS, measure_transports, transports_table


def turn(throughput_x: float, ttfp_ms: float) -> MeasuredTurn:
    return MeasuredTurn(throughput_x, ttfp_ms / 1e3, 0.002, {"text": 0.001, "talker": 0.02})


def test_an_edge_is_compared_with_the_server_of_its_own_round() -> None:
    # The machine is twice as fast in the second round; the third has an outlier.
    rounds = (
        Round({SERVER: turn(50, 40), PROXY: turn(50, 40), EDGE: turn(45, 42)}, ""),
        Round({SERVER: turn(100, 20), PROXY: turn(98, 21), EDGE: turn(90, 22)}, ""),
        Round({SERVER: turn(50, 40), PROXY: turn(50, 40), EDGE: turn(10, 90)}, "a burst"),
    )
    served = ServedLoad(16, rounds)
    share, added = served.throughput_share(EDGE), served.added_ttfp_s(EDGE)
    assert (share.median, share.least, share.most) == (0.9, 0.2, 0.9)
    assert [round(1e3 * one) for one in (added.median, added.least, added.most)] == [2, 2, 50]
    assert served.throughput_share(PROXY).median == 1.0
    table = served_table([served])
    assert "| 0.90 (0.20 to 0.90) | 2.0 ms (2.0 to 50.0) |" in table
    assert "text 1.0, talker 20.0" in table
    assert "Disturbed, with 16 streams: a burst." in table


def test_the_byte_proxy_changes_nothing_and_ends_with_either_side() -> None:
    sent = bytes(range(256)) * 8192
    with socket.create_server(("127.0.0.1", 0)) as behind:
        behind.settimeout(30)
        with running_proxy(f"http://127.0.0.1:{behind.getsockname()[1]}") as proxy:
            port = int(proxy.url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                server, _ = behind.accept()
                server.settimeout(30)
                with server:
                    sending = threading.Thread(target=client.sendall, args=(sent,))
                    sending.start()
                    there = b""
                    while len(there) < len(sent):
                        there += server.recv(1 << 16)
                    sending.join()
                    assert there == sent
                    server.sendall(b"back")
                    assert client.recv(16) == b"back"
                assert client.recv(16) == b"", "the server has closed"


@pytest.mark.thorough
@pytest.mark.integration
def test_every_transport_carries_every_chunk() -> None:
    found = measure_transports(CarriedLoad(streams=2, chunks=4), rounds=1)
    assert [one.name for one in found] == list(TRANSPORTS)
    for one in found:
        assert one.latency_p50_s > 0
        assert min(one.sender_cpu_s, one.receiver_cpu_s) > 0
        assert one.chunks_per_s > 0
    assert {line.count("|") for line in transports_table(found).splitlines()} == {7}
