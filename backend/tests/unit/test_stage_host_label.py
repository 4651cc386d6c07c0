"""The stages' series say which stage host runs each, if any does."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from cantata.contract.service import StageReport
from cantata.metrics.service import ServiceCollector


def join_text(*reports: StageReport) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceCollector(reports, {}))
    return generate_latest(registry).decode()


def report(stage: str, host: str = "") -> StageReport:
    return StageReport("m", stage, 1, True, 1.0, 1000, host=host)


def test_a_stage_host_is_a_label_of_the_stages() -> None:
    text = join_text(report("talker", "10.0.0.8:8200"), report("codec"))
    assert 'cantata_stage_alive{host="10.0.0.8:8200",model="m",stage="talker"} 1.0' in text
    assert 'cantata_stage_alive{host="",model="m",stage="codec"} 1.0' in text


def test_without_stage_hosts_there_is_no_such_label() -> None:
    assert 'cantata_stage_alive{model="m",stage="codec"} 1.0' in join_text(report("codec"))
