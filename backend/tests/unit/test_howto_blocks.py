"""docs/howto and docs/migrate.md: a test runs or reads each block of code, or it is said here why
none can."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from documented import HOWTOS

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([*HOWTOS.glob("*.md"), HOWTOS.parent / "migrate.md"])
ENGINE = "needs a container engine, which no machine of the tests has"
GPU = "needs an NVIDIA GPU, or gigabytes of its packages"
ASSISTANT = "needs a program that belongs to an account"
MODEL = "needs a checkpoint that the reader downloads"
NOT_RUN = {
    ("compose.md", 'echo "CANTATA_API_KEY=$(openssl rand -hex 16)" > docker/server.env'): ENGINE,
    (
        "compose.md",
        "docker compose --env-file docker/server.env -f docker/compose.yaml -f compose.own.yaml "
        "up --detach --wait",
    ): ENGINE,
    ("compose.md", "git pull"): ENGINE,
    ("gpu.md", 'echo "CANTATA_API_KEY=$(openssl rand -hex 16)" > docker/server.env'): ENGINE,
    ("gpu.md", "python3 -m venv cuda"): GPU,
    ("gpu.md", "cuda/bin/cantata doctor --model FOLDER"): GPU,
    ("gpu.md", "cuda/bin/python benchmarks/gpu/run.py --out artifacts/gpu"): GPU,
    ("mcp.md", "claude mcp add --transport http speech http://127.0.0.1:8000/mcp"): ASSISTANT,
    (
        "migrate.md",
        "cantata serve --alias kokoro=hibari --alias gpt-4o=qwen3-omni --model hibari "
        "--model QWEN3-OMNI-FOLDER",
    ): MODEL,
}
"""By page and first line. The pages tell their readers, too."""


def read_blocks(document: Path) -> list[tuple[str, str]]:
    """Of each block of code: the label behind its language, or nothing, and its first line."""
    text = document.read_text(encoding="utf-8")
    return re.findall(r"^```(?:\w+ )?([^\s`]*)\n(.*)$(?:\n.*)*?\n```$", text, re.MULTILINE)


@cache
def read_tests() -> list[str]:
    tests = ("backend/tests/**/test_*.py", "benchmarks/tests/test_*.py", "docker/tests/test_*.py")
    files = {file for pattern in (*tests, "e2e/**/test_*.py") for file in ROOT.glob(pattern)}
    return [file.read_text(encoding="utf-8") for file in files - {Path(__file__)}]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_each_block_is_read_by_a_test_or_cannot_be_run(document: Path) -> None:
    blocks = read_blocks(document)
    assert blocks
    tests = [test for test in read_tests() if document.name in test]
    for label, line in blocks:
        if label:
            assert any(f'"{label}"' in test for test in tests), f"no test reads {label}"
        else:
            assert (document.name, line) in NOT_RUN, line


def test_what_cannot_be_run_is_there() -> None:
    found = {(document.name, line) for document in DOCUMENTS for _, line in read_blocks(document)}
    assert found >= NOT_RUN.keys()
