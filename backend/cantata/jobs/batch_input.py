"""The file of a batch: a request in each line, checked before any is answered."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cantata.jobs.batch import BatchLine, LineProblem

MAX_LINES = 50_000
MAX_CUSTOM_ID_CHARACTERS = 512
_MAX_PROBLEMS = 100
_NICENESS = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CheckedInput:
    """A file of requests, as far as it is valid."""

    lines: tuple[BatchLine, ...]
    problems: tuple[LineProblem, ...]
    """The first ones; empty: the file is valid."""


async def check_input(path: Path, endpoint: str, max_line_bytes: int) -> CheckedInput:
    """Read a file line by line, in a thread that yields to others. `endpoint`: that every line must
    ask."""
    # 200 MB of JSON take seconds of CPU time, which live streams need more.
    thread = ThreadPoolExecutor(1, "batch-input", initializer=os.nice, initargs=(_NICENESS,))
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(thread, _check, path, endpoint, max_line_bytes)
    finally:
        thread.shutdown(wait=False)


def read_line(path: Path, line: BatchLine) -> dict[str, Any]:
    """The request of a checked line: its `custom_id`, `method`, `url` and `body`."""
    with path.open("rb") as file:
        file.seek(line.place)
        request: dict[str, Any] = json.loads(file.read(line.size))
    return request


def _check(path: Path, endpoint: str, max_line_bytes: int) -> CheckedInput:
    lines, problems, known = list[BatchLine](), list[LineProblem](), dict[str, int]()
    for number, place, data in _read_lines(path, max_line_bytes):
        found: str | LineProblem
        if len(data) > max_line_bytes:
            message = f"the line is longer than {max_line_bytes:,} bytes"
            found = LineProblem("line_too_large", message, number)
        else:
            found = _check_line(data, endpoint, number)
        if isinstance(found, str) and found in known:
            message = f"line {known[found]} has the custom_id {found[:100]!r} too"
            found = LineProblem("duplicate_custom_id", message, number, "custom_id")
        if isinstance(found, LineProblem):
            problems.append(found)
        elif len(lines) == MAX_LINES:
            message = f"the file has more than {MAX_LINES:,} requests; make several batches of it"
            problems.append(LineProblem("too_many_requests", message, number))
            break
        else:
            known[found] = number
            lines.append(BatchLine(number, found, place, len(data)))
        if len(problems) == _MAX_PROBLEMS:
            break
    if not (lines or problems):
        problems.append(LineProblem("empty_file", "the file has no requests", None))
    return CheckedInput(tuple(lines), tuple(problems))


def _read_lines(path: Path, max_line_bytes: int) -> Iterator[tuple[int, int, bytes]]:
    """Number, place and bytes of each line that is not blank; of one that is too long, more bytes
    than the maximum."""
    with path.open("rb") as file:
        number = 0
        if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            file.seek(0)
        while True:
            number, place = number + 1, file.tell()
            data = file.readline(max_line_bytes + 2)
            if not data:
                return
            rest = data
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(max_line_bytes)
            if data.strip():
                yield number, place, data.removesuffix(b"\n")


def _check_line(data: bytes, endpoint: str, number: int) -> str | LineProblem:
    """The line's `custom_id`, or what is wrong with it."""
    try:
        request = json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"the line is not valid JSON: {error}"
        return LineProblem("invalid_json_line", message, number)
    if not isinstance(request, dict):
        return LineProblem("invalid_json_line", "the line is not a JSON object", number)
    for field in ("custom_id", "method", "url", "body"):
        if field not in request:
            message = f"{field} is required"
            return LineProblem("missing_required_parameter", message, number, field)
    custom_id, method, url = request["custom_id"], request["method"], request["url"]
    if not _is_name(custom_id):
        message = f"custom_id must be a text of 1 to {MAX_CUSTOM_ID_CHARACTERS} characters"
        return LineProblem("invalid_value", message, number, "custom_id")
    if method != "POST":
        message = f"method is {_show(method)}; valid: 'POST'"
        return LineProblem("invalid_method", message, number, "method")
    if url != endpoint:
        message = f"url is {_show(url)}; the batch's endpoint is {endpoint!r}"
        return LineProblem("invalid_url", message, number, "url")
    if not isinstance(request["body"], dict):
        return LineProblem("invalid_value", "body must be a JSON object", number, "body")
    return str(custom_id)


def _is_name(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CUSTOM_ID_CHARACTERS:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _show(value: object) -> str:
    return repr(value)[:100]
