"""The benchmark of a stage's edge moves frames through the parts that a server and a host use."""

from __future__ import annotations

import pytest

from cantata_bench.cluster.connectors import CarriedLoad
from cantata_bench.cluster.stage_edges import measure_edges
from cantata_bench.cluster.tables import edges_table

pytestmark = pytest.mark.integration


def test_both_ways_are_measured() -> None:
    found = measure_edges(CarriedLoad(streams=2, chunks=4))
    assert [one.name for one in found] == ["Unix socket", "over a link"]
    assert all(one.latency_s > 0 for one in found)
    unix, link = (one.relay_cpu_s for one in found)
    assert not unix, "nobody relays"
    assert len(link) == 2
    assert min(link) > 0
    table = edges_table(found).splitlines()
    assert len(table) == 4
    assert {line.count("|") for line in table} == {5}
