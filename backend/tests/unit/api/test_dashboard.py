"""The Grafana dashboard: /metrics exposes every metric that it queries."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[4]
DASHBOARD: dict[str, Any] = json.loads(
    (ROOT / "docker" / "grafana" / "dashboards" / "cantata.json").read_text(encoding="utf-8")
)
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def expressions() -> list[str]:
    variables = [str(one["query"]) for one in DASHBOARD["templating"]["list"]]
    return variables + [t["expr"] for panel in PANELS for t in panel.get("targets", ())]


async def test_every_metric_that_it_shows_is_exposed(asgi: httpx.AsyncClient) -> None:
    text = (await asgi.get("/metrics")).text
    families = re.findall(r"^# TYPE (cantata_\w+) (\w+)$", text, re.MULTILINE)
    exposed = {name + suffix for name, kind in families for suffix in SUFFIXES.get(kind, ())}
    shown = {
        name for expression in expressions() for name in re.findall(r"cantata_\w+", expression)
    }
    assert len(shown) > 20
    assert shown <= exposed, shown - exposed


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
