"""The Grafana dashboard: /metrics exposes every metric that it queries."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest

from dashboard import PANELS, exposed, shown


async def test_every_metric_that_it_shows_is_exposed(asgi: httpx.AsyncClient) -> None:
    """Those of replicas where there are some: `cluster/test_cluster_api.py`."""
    known = exposed((await asgi.get("/metrics")).text)
    own = {name for name in shown() if not name.startswith("cantata_replica_")}
    assert len(own) > 20
    assert own <= known, own - known


def test_panels_have_distinct_ids_and_do_not_overlap() -> None:
    ids = Counter(panel["id"] for panel in PANELS)
    assert set(ids.values()) == {1}
    places = Counter(
        (x, y)
        for where in (panel["gridPos"] for panel in PANELS)
        for x in range(where["x"], where["x"] + where["w"])
        for y in range(where["y"], where["y"] + where["h"])
    )
    assert max(places.values()) == 1
    assert max(x for x, _ in places) < 24


@pytest.mark.parametrize(
    "panel", [p for p in PANELS if p["type"] != "row"], ids=lambda p: p["title"]
)
def test_a_panel_is_complete(panel: dict[str, Any]) -> None:
    assert panel["description"]
    assert panel["targets"]
    assert panel["datasource"]["uid"] == "${datasource}"
    for target in panel["targets"]:
        for opening, closing in ("()", "[]", "{}"):
            assert target["expr"].count(opening) == target["expr"].count(closing)
