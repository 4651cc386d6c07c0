"""What is compared with a reference implementation, and that only what is alike is compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from live_server import Server

from cantata.config.plugins import load_plugins
from cantata.contract.data.errors import ConfigError
from cantata_bench.first_packet import ROUNDS, StreamTimes, hear_rounds
from cantata_bench.reference_compare import (
    SCRIPT,
    ComparedRow,
    ReferenceWork,
    Report,
    check_lengths,
    measure_reference,
    reference_rows,
    served_row,
    tables,
)


def heard(first_s: float | None, whole_s: float) -> StreamTimes:
    return StreamTimes(first_s, whole_s, audio_s=4.8)


def served() -> ComparedRow:
    alone = [[heard(0.1, 2.4)], [heard(0.05, 2.0)], [heard(0.2, 9.0)]]
    many = [[heard(0.1, 2.0), heard(0.3, 4.0)]] * 3
    return served_row(alone, many)


def report(threads: int, alone_s: float, both_s: float) -> Report:
    calls = [
        {"texts": 1, "whole_s": [alone_s] * 3, "audio_s": [4.8] * 3},
        {"texts": 2, "whole_s": [both_s] * 3, "audio_s": [9.6] * 3},
    ]
    return Report.model_validate_json(json.dumps({"threads": threads, "calls": calls}))


def test_streams_at_a_time_are_as_fast_as_the_last_of_them() -> None:
    row = served()
    assert (row.first_p50_s, row.whole_p50_s, row.text_s) == (0.1, 2.4, 4.8)
    assert row.alone_x == pytest.approx(4.8 / 2.4)
    assert row.many_x == pytest.approx(9.6 / 4.0)


def test_a_call_that_returns_all_at_once_sounds_no_sooner() -> None:
    one_by_one, at_once = reference_rows(report(1, 6.0, 8.0))
    assert one_by_one.first_p50_s == one_by_one.whole_p50_s == 6.0
    assert one_by_one.many_x == one_by_one.alone_x == pytest.approx(0.8)
    assert at_once.many_x == pytest.approx(1.2)


def test_ratios_are_to_the_best_number_of_threads() -> None:
    references = [*reference_rows(report(1, 6.0, 8.0)), *reference_rows(report(2, 4.8, 12.0))]
    found = dict(
        line.strip("| ").split(" | ")
        for line in tables(served(), references, 2).split("\n\n")[1].splitlines()[2:]
    )
    assert found == {
        "first sound: fastest reference / server": "48.0",  # 4.8 s over 0.1
        "audio-s/s at 1: server / fastest reference": "2.0",  # 2 over 1
        "audio-s/s at 2: server / fastest reference, one after another": "2.4",  # over 1
        "audio-s/s at 2: server / fastest reference, 2 in one call": "2.0",  # over 1.2
    }


def test_utterances_of_other_lengths_are_not_compared() -> None:
    longer = [[StreamTimes(0.1, 2.0, audio_s=4.88)]]
    references = list(reference_rows(report(1, 6.0, 8.0)))
    check_lengths(served(), references)
    with pytest.raises(RuntimeError, match=r"4\.80 s of sound a text, and the server made 4\.88 s"):
        check_lengths(served_row(longer, longer), references)


def test_a_refusal_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="the server rejected streams"):
        served_row([[heard(0.1, 2.0)]], [[heard(0.1, 2.0), heard(None, 0.1)]])


def test_a_model_without_a_reference_says_so() -> None:
    with pytest.raises(ConfigError, match="no reference to measure"):
        measure_reference(Path(sys.executable), ReferenceWork("solo", 8, 60, "float32"), 1)


def test_the_reference_s_answer_is_its_last_line(tmp_path: Path) -> None:
    with_script = (
        plugin
        for plugin in load_plugins().values()
        if (plugin.deployment.parent / SCRIPT).is_file()
    )
    config = {"model_type": next(with_script).model_types[0]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\n"
        "import json, os\n"
        'call = {"texts": 1, "whole_s": [6.0], "audio_s": [4.8]}\n'
        'print("a banner")\n'
        'print(json.dumps({"threads": int(os.environ["OMP_NUM_THREADS"]), "calls": [call]}))\n'
    )
    python.chmod(0o755)
    found = measure_reference(python, ReferenceWork(str(tmp_path), 8, 60, "float32"), 2)
    assert found.threads == 2
    assert found.calls[0].audio_s == (4.8,)


async def test_rounds_are_heard_without_the_one_that_warms_up(server: Server) -> None:
    rounds = await hear_rounds(server.url, 2, 5)
    assert [len(found) for found in rounds] == [2] * ROUNDS
    assert server.service.solo.counts.max_open == 2
    for one in (one for found in rounds for one in found):
        assert one.first_s is not None
        assert one.first_s <= one.whole_s
        assert one.audio_s > 0
