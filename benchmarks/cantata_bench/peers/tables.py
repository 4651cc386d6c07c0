"""What was found, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from cantata_bench.peers.duel import DuelResult, Ratio
from cantata_bench.tables import table


def make_peers_table(other: str, found: Sequence[DuelResult]) -> str:
    """Ratios alone: what was measured of two programs in one run on one machine."""
    head = (
        f"requests at once, beside {other}",
        "time to the first sound",
        "seconds of sound per second",
        "memory",
        "played without a gap, no buffer",
    )
    return table(
        head,
        [
            (
                str(one.listeners),
                _format_ratio(one.first),
                _format_ratio(one.throughput),
                _format_ratio(one.memory),
                f"{one.gapless[0]:.0%}; {one.gapless[1]:.0%} there",
            )
            for one in found
        ],
    )


def _format_ratio(ratio: Ratio) -> str:
    return f"{ratio.middle:.2f}x ({ratio.least:.2f} to {ratio.most:.2f})"
