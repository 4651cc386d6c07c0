"""The figures of links and edges, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from cantata_bench.cluster.connectors import Carried
from cantata_bench.cluster.served import EDGE, PROXY, SERVER, MeasuredTurn, ServedLoad
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


def served_table(found: Sequence[ServedLoad]) -> str:
    """A table with one row for each load and way, and one of the first packets' time."""
    rows = [
        "| streams | | seconds of sound per second | TTFP p50 | CPU for a second of sound "
        "| share of the throughput | added TTFP |",
        "|-|-|-|-|-|-|-|",
    ]
    steps = ["| streams | | where the first packets' time went (p50 of each step) |", "|-|-|-|"]
    for one in found:
        for way in (SERVER, PROXY, EDGE):
            rows.append(f"| {one.streams} | {way} | {_list_figures(one, way)} |")
            steps.append(f"| {one.streams} | {way} | {_list_steps(one.turns(way))} |")
    disturbed = [
        f"Disturbed, with {one.streams} streams: {each.disturbance}."
        for one in found
        for each in one.rounds
        if each.disturbance
    ]
    return "\n".join([*rows, "", *steps, "", *disturbed]).rstrip()


def _list_figures(one: ServedLoad, way: str) -> str:
    turns = one.turns(way)
    cells = [
        f"{median(turn.throughput_x for turn in turns):.1f}",
        f"{1e3 * median(turn.ttfp_s for turn in turns):.1f} ms",
        f"{1e3 * median(turn.cpu for turn in turns):.1f} ms",
    ]
    if way == SERVER:
        return " | ".join([*cells, "", ""])
    share, added = one.throughput_share(way), one.added_ttfp_s(way)
    return " | ".join(
        [
            *cells,
            f"{share.median:.2f} ({share.least:.2f} to {share.most:.2f})",
            f"{1e3 * added.median:.1f} ms ({1e3 * added.least:.1f} to {1e3 * added.most:.1f})",
        ]
    )


def _list_steps(turns: Sequence[MeasuredTurn]) -> str:
    names = dict.fromkeys(name for turn in turns for name in turn.steps)
    middle = {name: median(turn.steps.get(name, 0.0) for turn in turns) for name in names}
    return ", ".join(f"{name} {1e3 * step_s:.1f}" for name, step_s in middle.items())
