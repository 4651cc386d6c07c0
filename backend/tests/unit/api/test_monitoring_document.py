"""docs/howto/monitoring.md: its requests are answered, and its rules ask for what is exposed."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
import yaml

from dashboard import exposed, labels
from documented import HOWTOS, read_block

PAGE = HOWTOS / "monitoring.md"
DOCUMENT = PAGE.read_text("utf-8")
ROUTES = re.findall(r"^curl http://127\.0\.0\.1:8000(/\w+)", DOCUMENT, re.MULTILINE)


def read(label: str) -> Any:
    """The YAML of this label."""
    return yaml.safe_load(read_block(PAGE, label))


RULES: list[dict[str, str]] = read("cantata-rules.yaml")["groups"][0]["rules"]


@pytest.mark.parametrize("route", ROUTES)
async def test_what_it_asks_is_answered(asgi: httpx.AsyncClient, route: str) -> None:
    assert (await asgi.get(route)).status_code == 200
    assert len(ROUTES) == 3


async def test_rules_ask_for_what_is_exposed(asgi: httpx.AsyncClient) -> None:
    body = {"input": "Hello.", "response_format": "pcm"}
    (await asgi.post("/v1/audio/speech", json=body)).raise_for_status()
    text = (await asgi.get("/metrics")).text
    names, known = exposed(text), labels(text)
    for rule in RULES:
        asked = re.findall(r"cantata_\w+", rule["expr"])
        assert names.issuperset(asked), rule
        wanted = set(re.findall(r"\{(\w+)=", rule["expr"]))
        for grouped in re.findall(r"by \((.*?)\)", rule["expr"]):
            wanted.update(grouped.split(", "))
        for name in (one for one in asked if one in known):
            assert known[name].issuperset(wanted), rule


def test_prometheus_watches_the_job_of_the_rules_and_reads_their_file() -> None:
    settings = read("prometheus.yaml")
    (job,) = settings["scrape_configs"]
    assert f'up{{job="{job["job_name"]}"}}' in RULES[0]["expr"]
    assert settings["rule_files"] == ["cantata-rules.yaml"]


def test_every_alert_is_explained() -> None:
    explained = re.findall(r"^\| `(Cantata\w+)` \|", DOCUMENT, re.MULTILINE)
    assert explained == [rule["alert"] for rule in RULES]
