"""The first packet beside the bare model: the same machine, the same moment, turn by turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from statistics import median

import pytest

from cantata.client import Session, connect
from timed import timed

from .bare import BareModel, bare_model
from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TEXT = "Good afternoon."
TURNS = 9
MAX_TIMES_BARE = 4.0
"""The server's median over the bare model's; found: 1.3 to 2."""
MAX_TIMES_BARE_AT_BEST = 5.0
"""Most times as long as the bare model that the fastest turns may take. Holds on a busy machine,
too, and fails if every packet is late."""


@pytest.fixture(scope="module")
def bare() -> Iterator[BareModel]:
    with bare_model() as model:
        model.first_packet_s(TEXT)  # warm
        yield model


async def first_packet_s(session: Session) -> float:
    asked = time.perf_counter()
    first_s = 0.0
    async for _ in session.speak(TEXT):
        first_s = first_s or time.perf_counter() - asked
    return first_s


async def take_turns(server: Server, bare: BareModel) -> tuple[list[float], list[float]]:
    """Seconds to the first packet: the server's and the bare model's."""
    async with connect(server.url) as session:
        await first_packet_s(session)  # warm
        ours, bares = [], []
        for _ in range(TURNS):
            ours.append(await first_packet_s(session))
            bares.append(bare.first_packet_s(TEXT))
        return ours, bares


def test_the_fastest_first_packet_is_near_the_bare_models(
    server: Server, bare: BareModel, figures: Callable[..., None]
) -> None:
    ours, bares = asyncio.run(take_turns(server, bare))
    figures(
        test="first packet",
        what=f"bare {1000 * median(bares):.0f} ms",
        **{"first packet": f"{1000 * median(ours):.0f} ms"},
        heard=f"{median(ours) / median(bares):.1f} times, at best {min(ours) / min(bares):.1f}",
    )
    times = min(ours) / min(bares)
    assert times <= MAX_TIMES_BARE_AT_BEST, f"the first packet takes {times:.1f} times as long"


@timed(one_sided=True)
def test_the_first_packet_is_near_the_bare_models(server: Server, bare: BareModel) -> None:
    ours, bares = asyncio.run(take_turns(server, bare))
    assert median(ours) <= MAX_TIMES_BARE * median(bares)
