"""What `cantata bench model` makes of its measurements, and its requests, bare and served."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import httpx
import pytest
from counting_stages import PIPELINE, CountingDecoder, CountingTalker
from fake_picture import DRAWING
from fake_service import eventually
from live_server import Server

from cantata.config.plugins import LocatedModel
from cantata.contract.data.request import PipelineRequest
from cantata_bench.baseline import BarePipeline
from cantata_bench.model_page.measure import (
    CheckpointFigures,
    LoadRow,
    Settings,
    ask_rounds,
    measure,
    run_round,
)
from cantata_bench.model_page.tables import page_text
from cantata_bench.model_page.work import (
    PictureWork,
    Rounds,
    SpeechWork,
    Taken,
    collect_rounds,
    pictures_within,
)

FRAMES, PERIOD_S = 6, 0.08
FAST = Rounds(first_p50_s=0.1, first_max_s=0.3, whole_p50_s=2.0, rtf_p50=0.5, per_second=8.0)


class Counted(SpeechWork):
    """As long as the counting stages speak."""

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        return [PipelineRequest(name, {"first": {"frames": FRAMES}}) for name in ids]  # type: ignore[dict-item]


def test_a_bare_round_ends_with_its_last_request() -> None:
    talker, decoder = CountingTalker(), CountingDecoder()
    stages = BarePipeline(PIPELINE, {"first": talker, "last": decoder})  # type: ignore[dict-item]
    taken = run_round(stages, None, Counted(FRAMES), 3)  # type: ignore[arg-type]
    assert talker.most == 3
    for one in taken:
        assert 0 < one.first_s < one.whole_s
        assert one.amount == pytest.approx(FRAMES * PERIOD_S)
    assert not any({**talker.get_counts(), **decoder.get_counts()}.values())


async def test_speech_is_asked_for_all_at_once(server: Server) -> None:
    found = await ask_rounds(server.url, SpeechWork(FRAMES), at_once=3, rounds=2)
    assert server.solo.counts.max_open == 3
    assert len(server.solo.counts.requests) == 9  # with a round that is not counted
    assert 0 < found.first_p50_s <= found.first_max_s
    assert found.refused == 0


async def test_pictures_are_asked_for_with_their_steps(server: Server) -> None:
    work = PictureWork(side=48, steps=4, guidance=2.0)
    painter = server.service.painter
    painter.behaviour.may_continue = asyncio.Event()
    async with httpx.AsyncClient(base_url=server.url) as http:
        asked = asyncio.create_task(work.ask(http))
        await eventually(lambda: painter.counts.open == 1)
        painter.behaviour.may_continue.set()
        taken = await asked
    assert taken is not None
    assert taken.first_s < taken.whole_s
    assert taken.amount == 1.0
    (request,) = painter.counts.requests
    assert (request.width, request.height, request.steps) == (48, 48, 4)
    painter.behaviour.full = True
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert await work.ask(http) is None


def test_pictures_keep_to_what_the_model_draws() -> None:
    assert pictures_within(DRAWING, side=250, steps=8) == PictureWork(240, 8, 2.0)
    assert pictures_within(DRAWING, side=2000, steps=80) == PictureWork(256, 10, 2.0)
    assert pictures_within(DRAWING, side=8, steps=1) == PictureWork(32, 1, 2.0)


def test_a_round_takes_as_long_as_its_slowest() -> None:
    rounds = [
        [Taken(0.1, 1.0, 2.0), Taken(0.2, 4.0, 2.0)],
        [Taken(0.4, 2.0, 2.0), None],
        [Taken(0.3, 2.0, 2.0), Taken(0.3, 2.0, 2.0)],
    ]
    found = collect_rounds(rounds)  # type: ignore[arg-type]
    assert (found.first_p50_s, found.first_max_s, found.whole_p50_s) == (0.3, 0.4, 2.0)
    assert (found.rtf_p50, found.per_second, found.refused) == (1.0, 1.0, 1)
    with pytest.raises(RuntimeError, match="no room for any"):
        collect_rounds([*rounds, [None]])  # type: ignore[list-item]


def figures(*rows: LoadRow, draws: bool = False) -> CheckpointFigures:
    return CheckpointFigures("reader", "tiny, random, 3 MB", draws, Settings(), rows)


def row(at_once: int, bare: float, disturbance: str = "") -> LoadRow:
    private = {"api": 80 << 20, "cantata:talker:0": (200 + at_once) << 20, "resource tracker": 1}
    return LoadRow(at_once, FAST, replace(FAST, per_second=bare), private, disturbance)


def test_the_page_tells_what_was_found() -> None:
    text = page_text([figures(row(1, 4.0), row(8, 16.0), row(16, 90.0, "others: 3 s"))])
    for line in (
        "`reader` (tiny, random, 3 MB), float32, at most 40 frames, 3 rounds of each number:",
        "| 1 | 0.100 s | 0.300 s | 2.00 s | 0.50 | 8.0 | 4.0 | 2.00 |",
        "| 16 (disturbed) | 0.100 s | 0.300 s | 2.00 s | 0.50 | 8.0 | 90.0 | 0.09 |",
        "Of the bare stages' throughput the goal is 75%: missed at 8; not measured at 16.",
        "| slots | api | talker |",
        "| 8 | 80 | 208 |",
    ):
        assert line in text.splitlines(), line
    assert "goal is 75%: met." in page_text([figures(row(1, 4.0))])
    assert "would need" not in text
    slow = page_text([figures(row(1, 4.0), row(16, 12.0))])
    assert "goal is 75%: missed at 16. 16 streams would need as many seconds of sound" in slow
    drawn = page_text([figures(row(1, 4.0), draws=True)])
    assert "| 1 | 0.100 s | 0.300 s | 2.00 s | 480 | 240 | 2.00 |" in drawn.splitlines()


def test_a_model_that_answers_is_not_measured_here() -> None:
    with pytest.raises(Exception, match=r"qwen3-omni answers; `python -m cantata_bench\.answers`"):
        measure("qwen3-omni", Settings(), lambda line: None)
