"""Flowcharts of Mermaid as lists of arrows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cantata_web.flowchart import (
    FlowArrow,
    FlowNode,
    UnknownFlowchart,
    draw_flowchart,
    read_flowchart,
)

ROOT = Path(__file__).parents[2]
SOURCE = """flowchart LR
  request([text, sound]) --> talker["talker<br><i>ar</i>"]
  subgraph host["10.0.0.8"]
    talker -- "a: B, <c>" --> codec -. PCM .-> out[end]
  end
  out -.-> request
"""


def shown(page: str) -> list[str]:
    """The lines of a list, without tags."""
    lines = re.findall("<li>(.*?)</li>", page)
    return [" ".join(re.sub("<[^>]*>", " ", line).split()) for line in lines]


def test_nodes_arrows_and_groups_are_read() -> None:
    chart = read_flowchart(SOURCE)
    assert chart.nodes["request"] == FlowNode(("text, sound",), is_end=True)
    assert chart.nodes["talker"] == FlowNode(("talker", "ar"))
    assert chart.arrows == [
        FlowArrow("request", "talker", "", is_dotted=False),
        FlowArrow("talker", "codec", "a: B, <c>", is_dotted=False),
        FlowArrow("codec", "out", "PCM", is_dotted=True),
        FlowArrow("out", "request", "", is_dotted=True),
    ]
    assert chart.groups == {"10.0.0.8": ["talker", "codec", "out"]}


def test_arrows_that_follow_each_other_are_one_line() -> None:
    page = draw_flowchart(SOURCE.replace("  out -.-> request", "  request --> codec"))
    assert shown(page) == [
        "text, sound → talker ar a: B, &lt;c&gt; → codec PCM ⇢ end",
        "text, sound → codec",
        "in 10.0.0.8: talker ar codec end",
    ]


@pytest.mark.parametrize(
    "source", ["pie\n a", "flowchart LR\n a{b} --> c", "flowchart LR\n a ==> b"]
)
def test_what_is_not_known_is_refused(source: str) -> None:
    with pytest.raises(UnknownFlowchart):
        read_flowchart(source)


@pytest.mark.parametrize("name", ["architecture", "cluster", "map"])
def test_the_documents_diagrams_are_read_whole(name: str) -> None:
    """Each name that a diagram has is shown."""
    text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    sources = re.findall("```mermaid\n(.*?)```", text, re.DOTALL)
    assert sources
    for source in sources:
        told = " ".join(shown(draw_flowchart(source)))
        arrows = len(re.findall("-->|->", source))
        assert told.count("→") + told.count("⇢") == arrows
        for label in re.findall('"([^"]*)"', source):
            assert all(part in told for part in re.split("<[^>]*>", label))
