"""The Grafana dashboard as it is in the repository, and what of `/metrics` it asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

_FILE = Path(__file__).parents[2] / "docker" / "grafana" / "dashboards" / "cantata.json"
DASHBOARD: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def expressions() -> list[str]:
    """Of all panels and variables."""
    variables = [str(one["query"]) for one in DASHBOARD["templating"]["list"]]
    return variables + [t["expr"] for panel in PANELS for t in panel.get("targets", ())]


def shown() -> set[str]:
    """Names of the series that it asks for."""
    return {name for one in expressions() for name in re.findall(r"cantata_\w+", one)}


def exposed(text: str) -> set[str]:
    """Names of the series that `/metrics` has, or would have once something is counted."""
    families = re.findall(r"^# TYPE (cantata_\w+) (\w+)$", text, re.MULTILINE)
    return {name + suffix for name, kind in families for suffix in _SUFFIXES.get(kind, ())}


def labels(text: str) -> dict[str, set[str]]:
    """Labels of each series that has a value now."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found
