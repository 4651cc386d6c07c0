"""Two small servers that are compared: one takes longer, and has room for two requests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from cantata.contract.data.errors import ConfigError
from cantata_bench.peers.contenders import MATCHES, WAV_HEADER, Contender, pocket_tts
from cantata_bench.peers.duel import (
    DuelRound,
    SoundArrival,
    compare,
    is_gapless,
    summarize_pairs,
)
from cantata_bench.peers.tables import make_peers_table

SERVER = """
import asyncio, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

port, header, room = (int(sys.argv[number]) for number in (1, 3, 4))
pause_s = float(sys.argv[2])
busy, refused = 0, 0

async def speak(request):
    global busy, refused
    text = (await (request.form if request.headers["content-type"].startswith("application/x-www")
                   else request.json)())["text"]
    if busy >= room:
        refused += 1
        return PlainTextResponse("full", 429, headers={"retry-after": "0.05"})
    busy += 1
    async def sound():
        global busy
        try:
            yield bytes(header) or b""
            for _ in range(2):
                await asyncio.sleep(pause_s)
                yield bytes(2 * 1000 * len(text))
        finally:
            busy -= 1
    return StreamingResponse(sound())

async def ready(request):
    return PlainTextResponse(str(refused))

uvicorn.run(Starlette(routes=[Route("/speak", speak, methods=["POST"]), Route("/ready", ready)]),
            host="127.0.0.1", port=port, log_level="warning")
"""


def contender(name: str, pause_s: float, *, header: int = 0, room: int = 99) -> Contender:
    """A server that says 1/12 s of each letter, in two parts with pauses before."""
    return Contender(
        name,
        (sys.executable, "-c", SERVER, "{port}", str(pause_s), str(header), str(room)),
        "/speak",
        {"text": "{text}"},
        24_000,
        header_bytes=header,
        is_form=header > 0,
        ready_route="/ready",
    )


def test_the_slower_server_has_the_larger_ratio(tmp_path: Path) -> None:
    quick, slow = contender("quick", 0.05), contender("slow", 0.6, header=WAV_HEADER, room=2)
    told = list[str]()
    one, four = compare((quick, slow), (1, 4), 1, ("Hello.", "Yes."), tmp_path, told.append)
    assert (one.listeners, four.listeners) == (1, 4)
    assert one.first.middle < 0.9
    assert one.throughput.middle > 1.1
    # Two of four wait for a place, and have only then been answered.
    assert four.throughput.middle > 1.1 * one.throughput.middle
    assert four.first.least <= four.first.middle <= four.first.most
    assert 0.3 < one.memory.middle < 3
    assert len(told) == 2
    table = make_peers_table("slow", [one, four])
    assert "beside slow" in table
    assert f"| 4 | {four.first.middle:.2f}x" in table


def test_a_server_that_does_not_start_is_named_by_its_words(tmp_path: Path) -> None:
    broken = Contender("broken", (sys.executable, "-c", "print('no voice'); exit(3)"), "/", {}, 1)
    with pytest.raises(RuntimeError, match=r"exit code 3.*\n.*no voice"):
        compare((broken, broken), (1,), 1, ("Hello.",), tmp_path, print)


def test_an_answer_without_sound_is_an_error(tmp_path: Path) -> None:
    silent = contender("silent", 0.0, header=WAV_HEADER)
    lost = Contender("lost", silent.command, "/nowhere", silent.body, 24_000, ready_route="/ready")
    with pytest.raises(RuntimeError, match="lost: 404"):
        compare((silent, lost), (1,), 1, ("Hello.",), tmp_path, print)


def test_ratios_are_of_turns() -> None:
    pairs = [
        (DuelRound(1, 6, 10, 1.0), DuelRound(2, 2, 5, 0.5)),
        (DuelRound(2, 6, 10, 1.0), DuelRound(2, 6, 5, 0.0)),
        (DuelRound(3, 6, 10, 0.4), DuelRound(4, 3, 5, 1.0)),
    ]
    found = summarize_pairs(8, pairs)
    assert (found.first.least, found.first.middle, found.first.most) == (0.5, 0.75, 1.0)
    assert (found.throughput.least, found.throughput.middle, found.throughput.most) == (1, 2, 3)
    assert found.memory.middle == 2
    assert found.gapless == pytest.approx((0.8, 0.5))


@pytest.mark.parametrize(
    ("late_s", "gapless"), [(0.0, True), (0.4, True), (0.41, False), (3.0, False)]
)
def test_a_gap_is_where_the_next_part_comes_after_the_sound_before_it(
    late_s: float, gapless: bool
) -> None:
    first, second = SoundArrival(2.0, 1.0), SoundArrival(2.6, 1.5)
    third = SoundArrival(3.1 + late_s, 2.0)  # the sound before it ends at 3.5 s
    assert is_gapless([first, second, third]) is gapless
    assert is_gapless([first])


def test_pocket_tts_reads_files_in_place_of_the_hub(tmp_path: Path) -> None:
    address = "hf://kyutai/pocket-tts/languages/english/model.safetensors@abc"
    (tmp_path / "english.yaml").write_text(yaml.safe_dump({"flow_lm": {"weights_path": address}}))
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ConfigError, match="embeddings"):
        pocket_tts("python", tmp_path)
    (tmp_path / "embeddings").mkdir()
    (tmp_path / "embeddings" / "alba.safetensors").touch()
    command = pocket_tts("python", tmp_path).command
    local = Path(command[command.index("--config") + 1])
    values = yaml.safe_load(local.read_text())
    assert values == {"flow_lm": {"weights_path": str(tmp_path / "model.safetensors")}}


def test_kokoro_s_files_get_the_ending_that_the_other_program_knows(tmp_path: Path) -> None:
    for name in ("kokoro-v1.0.int8.onnx", "voices-v1.0.bin"):
        (tmp_path / name).write_bytes(b"1")
    _, other = MATCHES["fastkokoro"]("python", tmp_path)
    assert Path(other.environment["FASTKOKORO_VOICES_PATH"]).read_bytes() == b"1"
    (tmp_path / "another.onnx").touch()
    with pytest.raises(ConfigError, match=r"needs one \*\.onnx, has 2"):
        MATCHES["fastkokoro"]("python", tmp_path)
