"""The tables, with published figures of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PartResult:
    """The outcome of one part."""

    outcome: str
    """measured, skipped or failed."""
    reason: str
    """Why it was not measured to its end; the last thing that it said."""
    seconds: float
    rows: list[dict[str, Any]]

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        outcome = f"{self.outcome}, {len(self.rows)} rows in {self.seconds:g} s"
        return f"{outcome}: {self.reason}" if self.reason else outcome

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


PUBLISHED_FIGURES = """\
| model and server | hardware | streams | figure |
|-|-|-|-|
| 1.7B CustomVoice, vLLM-Omni | 2 x H100 | 1, 8, 16 | TTFP 47, 75, 714 ms; RTF .14, .19, .31 |
| 1.7B, vLLM-Omni | 1 x H100 | 64 | 112 s of sound per second |
| 0.6B with CUDA graphs | RTX 4090 | 1 | first chunk after 156 ms |
"""
"""Figures of Qwen3-TTS's published weights, on other hardware and texts."""


def markdown(about: Mapping[str, Any], results: Mapping[str, PartResult]) -> str:
    """A page: where it was measured, a table for each part, and the published figures."""
    lines = ["# Speech models with random weights", ""]
    lines += [", ".join(f"{key} {value}" for key, value in about.items()), ""]
    for name, result in results.items():
        lines += [f"## {name}", "", result.summary, ""]
        if result.rows:
            lines += [*_TABLES[name](result.rows), ""]
    lines += ["## Published by others", "", PUBLISHED_FIGURES.rstrip()]
    return "\n".join(lines) + "\n"


def _compared(step: Row, audio_s: float) -> str:
    """Columns of one plain call and its graph."""
    eager, graph = step["eager"]["median_ms"], step["graph"]
    if graph is None:
        graph = step["graph_error"] or "not captured"
        return f"{eager:.2f} | {graph} | | | {1000 * audio_s / eager:.1f} |"
    replay = graph["timing"]["median_ms"]
    return (
        f"{eager:.2f} | {replay:.2f} | {eager / replay:.1f} | {graph['difference']:.1g} | "
        f"{1000 * audio_s / replay:.1f} |"
    )


_COMPARED_HEAD = "eager ms | graph ms | eager / graph | difference | s of sound per s |"


def _codec(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| precision | rows | frames | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|-|"
    for row in rows:
        shape = f"| {row['precision']} | {row['batch']} | {row['frames']} | "
        yield shape + _compared(row["step"], row["audio_s"])


def _predictor(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| codes | requests | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|"
    for row in rows:
        choice = "sampled" if row["sampled"] else "greedy"
        yield f"| {choice} | {row['batch']} | " + _compared(row["step"], row["audio_s"])


def _step(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| step | codes | requests | positions | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|-|-|"
    for row in rows:
        shape = f"| {row['step']} | {row['kind']} | {row['batch']} | {row['positions']} | "
        yield shape + _compared(row["time"], row["audio_s"])


def _moss_codec(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| model | rows | frames | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|-|"
    for row in rows:
        shape = f"| {row['model']} | {row['batch']} | {row['frames']} | "
        yield shape + _compared(row["step"], row["audio_s"])


def _moss_frames(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| model | codes | requests | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|-|"
    for row in rows:
        choice = "sampled" if row["sampled"] else "greedy"
        shape = f"| {row['model']} | {choice} | {row['batch']} | "
        yield shape + _compared(row["step"], row["audio_s"])


def _patches(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"| steps | requests | {_COMPARED_HEAD}"
    yield "|-|-|-|-|-|-|-|"
    for row in rows:
        yield f"| {row['steps']} | {row['batch']} | " + _compared(row["step"], row["audio_s"])


def _serve(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| streams | spoken | refused | TTFP p50 ms | TTFP p95 ms | RTF p50 | s of sound per s |"
    yield "|-|-|-|-|-|-|-|"
    for row in rows:
        cells = (row["ttfp_p50_ms"], row["ttfp_p95_ms"], row["rtf_p50"])
        first, late, rtf = ("" if cell is None else f"{cell:.3g}" for cell in cells)
        yield (
            f"| {row['streams']} | {row['spoken']} | {row['refused']} | {first} | {late} | {rtf} | "
            f"{row['audio_s_per_s']:.1f} |"
        )


def _env(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| what | found |"
    yield "|-|-|"
    for row in rows:
        yield f"| {row['name']} | {row['found'] or 'not there'} |"


def _profile(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| step | operation | calls | device us | host us |"
    yield "|-|-|-|-|-|"
    for row in rows:
        name = row["operation"][:60].replace("|", "/")
        yield (
            f"| {row['step']} | {name} | {row['calls']} | {row['device_us']:.0f} | "
            f"{row['host_us']:.0f} |"
        )


def _open_loop(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| load | seed | sent | refused | TTFP p50 ms | TTFP p95 ms | underruns | "
        "s of sound per s |"
    )
    yield "|-|-|-|-|-|-|-|-|"
    for row in rows:
        cells = (row["ttfp_p50_ms"], row["ttfp_p95_ms"])
        first, late = ("" if cell is None else f"{cell:.1f}" for cell in cells)
        yield (
            f"| {row['load']} | {row['seed']} | {row['sent']} | {row['refused']} | {first} | "
            f"{late} | {row['underruns']} | {row['audio_s_per_s']:.1f} |"
        )


_TABLES: Mapping[str, Callable[[list[dict[str, Any]]], Iterator[str]]] = {
    "env": _env,
    "codec": _codec,
    "predictor": _predictor,
    "step": _step,
    "moss_codec": _moss_codec,
    "moss_frames": _moss_frames,
    "patches": _patches,
    "profile": _profile,
    "serve": _serve,
    "open_loop": _open_loop,
}
