"""The file of a batch: what is a request, and what is wrong with what is none, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cantata.jobs import batch_input
from cantata.jobs.batch_input import CheckedInput, check_input, read_line

URL = "/v1/audio/speech"
LIMIT = 1 << 20


def line(custom_id: object = "a", **fields: object) -> bytes:
    request = {"custom_id": custom_id, "method": "POST", "url": URL, "body": {"input": "Hi."}}
    return json.dumps(request | fields).encode() + b"\n"


async def check(folder: Path, data: bytes) -> CheckedInput:
    path = folder / "input"
    path.write_bytes(data)
    return await check_input(path, URL, LIMIT)


async def test_lines_are_found_and_read_again(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + line("a") + b"\r\n  \n" + line("\u00e9 \u4e00", body={"input": "2"})
    found = await check(tmp_path, data + line("c").rstrip(b"\n"))
    assert not found.problems
    assert [(one.number, one.custom_id) for one in found.lines] == [
        (1, "a"),
        (4, "\u00e9 \u4e00"),
        (5, "c"),
    ]
    read = [read_line(tmp_path / "input", one) for one in found.lines]
    assert [one["custom_id"] for one in read] == ["a", "\u00e9 \u4e00", "c"]
    assert read[1]["body"] == {"input": "2"}


@pytest.mark.parametrize(
    ("bad", "code", "param"),
    [
        (b"Hello.\n", "invalid_json_line", None),
        (b"[1]\n", "invalid_json_line", None),
        (b'{"custom_id": "\xff"}\n', "invalid_json_line", None),
        (b"[" * 100_000 + b"\n", "invalid_json_line", None),
        (b'{"method": "POST"}\n', "missing_required_parameter", "custom_id"),
        (line(5), "invalid_value", "custom_id"),
        (line(""), "invalid_value", "custom_id"),
        (line("x" * 513), "invalid_value", "custom_id"),
        (line("\ud800"), "invalid_value", "custom_id"),
        (line(method="GET"), "invalid_method", "method"),
        (line(url="/v1/embeddings"), "invalid_url", "url"),
        (line(url=None), "invalid_url", "url"),
        (line(body="Hi."), "invalid_value", "body"),
        (line("first"), "duplicate_custom_id", "custom_id"),
        (line(body={"input": "x" * (2 << 20)}), "line_too_large", None),
    ],
)
async def test_a_bad_line_is_named(
    tmp_path: Path, bad: bytes, code: str, param: str | None
) -> None:
    found = await check(tmp_path, line("first") + bad + line("last"))
    (problem,) = found.problems
    assert (problem.line, problem.code, problem.param) == (2, code, param)
    assert len(problem.message) < 200
    assert found.lines[-1].custom_id == "last"


@pytest.mark.parametrize("data", [b"\n", b"  \n\n", b"\xef\xbb\xbf"])
async def test_a_file_without_requests_is_refused(tmp_path: Path, data: bytes) -> None:
    (problem,) = (await check(tmp_path, data)).problems
    assert (problem.code, problem.line) == ("empty_file", None)


async def test_there_is_a_limit_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_input, "MAX_LINES", 3)
    whole = b"".join(line(str(number)) for number in range(3))
    assert not (await check(tmp_path, whole)).problems
    (problem,) = (await check(tmp_path, whole + line("one more"))).problems
    assert (problem.code, problem.line) == ("too_many_requests", 4)


async def test_only_the_first_problems_are_kept(tmp_path: Path) -> None:
    problems: Any = (await check(tmp_path, b"x\n" * 1_000)).problems
    assert [one.line for one in problems] == list(range(1, 101))
