"""The figures of links and edges, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from cantata_bench.cluster.connectors import Carried
from cantata_bench.cluster.served import Served


def connectors_table(found: Sequence[Carried]) -> str:
    """One row for each connector."""
    head = ["| connector | latency p50 | CPU a chunk, sender | receiver |", "|-|-|-|-|"]
    rows = (
        f"| {one.name} | {1e3 * one.latency_s:.2f} ms | {1e3 * one.sender_cpu_s:.2f} ms "
        f"| {1e3 * one.receiver_cpu_s:.2f} ms |"
        for one in found
    )
    return "\n".join([*head, *rows])


def served_table(found: Sequence[Served]) -> str:
    """One row for each load."""
    rows = [
        "| streams | server: seconds of sound per second, TTFP p50 | through an edge | ratios |",
        "|-|-|-|-|",
    ]
    for one in found:
        (server_x, edge_x), (server_s, edge_s) = one.throughput_x, one.ttfp_s
        rows.append(
            f"| {one.streams} | {server_x:.1f}, {1e3 * server_s:.0f} ms "
            f"| {edge_x:.1f}, {1e3 * edge_s:.0f} ms "
            f"| {edge_x / server_x:.2f}, {edge_s / server_s:.2f} |"
        )
    return "\n".join(rows)
