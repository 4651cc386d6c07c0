"""The figures of links and edges, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from cantata_bench.cluster.connectors import Carried
from cantata_bench.cluster.served import Served, Way
from cantata_bench.cluster.stage_edges import EdgeCost


def connectors_table(found: Sequence[Carried]) -> str:
    """A table with one row for each connector."""
    head = ["| connector | latency p50 | CPU a chunk, sender | receiver |", "|-|-|-|-|"]
    rows = (
        f"| {one.name} | {1e3 * one.latency_s:.2f} ms | {1e3 * one.sender_cpu_s:.2f} ms "
        f"| {1e3 * one.receiver_cpu_s:.2f} ms |"
        for one in found
    )
    return "\n".join([*head, *rows])


def edges_table(found: Sequence[EdgeCost]) -> str:
    """A table with one row for each way from stage to stage."""
    head = ["| stage edge | latency p50 | CPU a chunk, server | stage host |", "|-|-|-|-|"]
    rows = []
    for one in found:
        relays = [f"{1e3 * cpu_s:.3f} ms" for cpu_s in one.relay_cpu_s] or ["", ""]
        rows.append(f"| {one.name} | {1e3 * one.latency_s:.2f} ms | {relays[0]} | {relays[1]} |")
    return "\n".join([*head, *rows])


def served_table(found: Sequence[Served]) -> str:
    """A table with one row for each load."""
    rows = [
        "| streams | server: seconds of sound per second, TTFP p50, CPU for a second of sound "
        "| through an edge | ratios of the first two |",
        "|-|-|-|-|",
    ]
    for one in found:
        throughput = one.edge.throughput_x / one.server.throughput_x
        ttfp = one.edge.ttfp_s / one.server.ttfp_s
        rows.append(
            f"| {one.streams} | {_cells(one.server)} | {_cells(one.edge)} "
            f"| {throughput:.2f}, {ttfp:.2f} |"
        )
    return "\n".join(rows)


def _cells(way: Way) -> str:
    return f"{way.throughput_x:.1f}, {1e3 * way.ttfp_s:.0f} ms, {1e3 * way.cpu:.1f} ms"
