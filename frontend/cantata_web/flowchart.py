"""Mermaid's flowcharts as lists of arrows: the guide shows them without a script.

Of Mermaid it knows what the documents use: nodes, arrows with labels, subgraphs.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_NODE = re.compile(r'\s*(?P<id>\w+)(?:\(\[(?P<end>[^\]]*)\]\)|\["?(?P<box>[^"\]]*)"?\])?\s*')
_ARROW = re.compile(
    r'(?:--|-\.)(?:\s*"(?P<quoted>[^"]*)"|\s+(?P<bare>[^">]*?))?\s*(?P<head>\.->|-->|->|>)'
)
_SUBGRAPH = re.compile(r'\s*subgraph\s+(?P<id>\w+)(?:\["?(?P<label>[^"\]]*)"?\])?\s*')


class UnknownFlowchart(ValueError):
    """The source has something that is not known here."""


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A node, by its label's lines."""

    lines: tuple[str, ...]
    is_end: bool = False
    """Where requests come from and answers go."""


@dataclass(frozen=True, slots=True)
class FlowArrow:
    """From one node to another, by their ids."""

    source: str
    target: str
    label: str
    is_dotted: bool


@dataclass(slots=True)
class Flowchart:
    """What a source has, in its order."""

    nodes: dict[str, FlowNode] = field(default_factory=dict)
    arrows: list[FlowArrow] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    """Ids of nodes by the subgraph's label."""


def draw_flowchart(source: str) -> str:
    """HTML: a list of chains of arrows, then what each subgraph holds. Raises UnknownFlowchart: it
    has something that is not known here."""
    chart = read_flowchart(source)
    lines = ["".join(_draw_chain(chart, chain)) for chain in _join_arrows(chart.arrows)]
    for label, ids in chart.groups.items():
        held = "".join(_draw_node(chart.nodes[one]) for one in ids)
        lines.append(f"<span>in {html.escape(label)}:</span>{held}")
    return f'<ul class="flow">{"".join(f"<li>{line}</li>" for line in lines)}</ul>\n'


def read_flowchart(source: str) -> Flowchart:
    """The nodes and arrows of a source. Raises UnknownFlowchart: it has something that is not known
    here."""
    first, *lines = source.strip().splitlines()
    if not first.startswith("flowchart "):
        raise UnknownFlowchart(first)
    chart, group = Flowchart(), ""
    for line in lines:
        if found := _SUBGRAPH.fullmatch(line):
            group = found["label"] or found["id"]
            chart.groups[group] = []
        elif line.strip() == "end":
            group = ""
        else:
            _read_arrows(line, chart, group)
    return chart


def _read_arrows(line: str, chart: Flowchart, group: str) -> None:
    """Read a node and the arrows that follow it, from one to the next."""
    node = _NODE.match(line)
    while node is not None:
        _keep_node(node, chart, group)
        if node.end() == len(line):
            return
        arrow = _ARROW.match(line, node.end())
        following = arrow and _NODE.match(line, arrow.end())
        if arrow and following:
            label = arrow["quoted"] or arrow["bare"] or ""
            is_dotted = arrow[0].startswith("-.")
            chart.arrows.append(FlowArrow(node["id"], following["id"], label, is_dotted))
        node = following
    raise UnknownFlowchart(line)


def _keep_node(found: re.Match[str], chart: Flowchart, group: str) -> None:
    name, label = found["id"], found["end"] or found["box"]
    if label or name not in chart.nodes:
        lines = re.split(r"<br\s*/?>", label or name)
        plain = tuple(re.sub(r"<[^<>]*>", "", one) for one in lines)
        chart.nodes[name] = FlowNode(plain, found["end"] is not None)
    if group and name not in chart.groups[group]:
        chart.groups[group].append(name)


def _join_arrows(arrows: Sequence[FlowArrow]) -> Iterator[list[FlowArrow]]:
    """Chains of arrows of which each begins where the one before ended."""
    chain: list[FlowArrow] = []
    for arrow in arrows:
        if chain and chain[-1].target != arrow.source:
            yield chain
            chain = []
        chain.append(arrow)
    if chain:
        yield chain


def _draw_chain(chart: Flowchart, chain: Sequence[FlowArrow]) -> Iterator[str]:
    yield _draw_node(chart.nodes[chain[0].source])
    for arrow in chain:
        sign = "\u21e2" if arrow.is_dotted else "\u2192"
        yield f"<span>{html.escape(f'{arrow.label} {sign}'.strip())}</span>"
        yield _draw_node(chart.nodes[arrow.target])


def _draw_node(node: FlowNode) -> str:
    name, *about = map(html.escape, node.lines)
    shape = ' class="end"' if node.is_end else ""
    return f"<b{shape}>{name}{''.join(f' <i>{one}</i>' for one in about)}</b>"
