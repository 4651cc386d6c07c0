"""Rows of the database as dataclasses: a column fills the field of its name.

A query says which columns are more than a number or a text: `options AS "options [json]"`,
`begins AS "begins [bool]"`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

T = TypeVar("T")

sqlite3.register_converter("json", json.loads)
sqlite3.register_converter("bool", lambda value: value != b"0")


@dataclass(frozen=True, slots=True)
class ListPage:
    """Which part of a list is asked for."""

    limit: int
    after: str | None = None
    """Id of the last one that the client has; None: from the beginning."""
    newest_first: bool = True


def connect_rows(path: str, timeout_s: float) -> sqlite3.Connection:
    """Open a database for the functions below, without transactions of Python's own."""
    connection = sqlite3.connect(
        path, timeout=timeout_s, isolation_level=None, detect_types=sqlite3.PARSE_COLNAMES
    )
    connection.row_factory = sqlite3.Row
    return connection


def insert_row(db: sqlite3.Connection, table: str, values: Mapping[str, object]) -> None:
    """Insert a row; columns that are not named have their defaults."""
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", (*values.values(),))


def select_rows(
    db: sqlite3.Connection, kind: type[T], query: str, values: Sequence[object] = ()
) -> list[T]:
    """What a query finds, each row as a `kind`. Raises msgspec.ValidationError: a row is not such a
    dataclass."""
    return [msgspec.convert(dict(row), kind) for row in db.execute(query, values)]


def select_row(
    db: sqlite3.Connection, kind: type[T], query: str, values: Sequence[object] = ()
) -> T | None:
    """The first of `select_rows`; None: nothing is found."""
    row = db.execute(query, values).fetchone()
    return None if row is None else msgspec.convert(dict(row), kind)


def select_page(
    db: sqlite3.Connection,
    kind: type[T],
    query: str,
    table: str,
    page: ListPage,
    **wanted: object,
) -> tuple[list[T], bool]:
    """A page of a table, and whether there are more.

    Args:
        query: without conditions.
        table: that it reads, with `id` and `number`, the order of its list.
        wanted: values of columns.
    """
    order, follows = ("DESC", "<") if page.newest_first else ("ASC", ">")
    conditions, values = [f"{name} = ?" for name in wanted], [*wanted.values()]
    if page.after is not None:
        conditions.append(f"number {follows} (SELECT number FROM {table} WHERE id = ?)")
        values.append(page.after)
    whole = f"{query} WHERE {' AND '.join(conditions)} ORDER BY number {order} LIMIT ?"
    found = select_rows(db, kind, whole, (*values, page.limit + 1))
    return found[: page.limit], len(found) > page.limit


def count_rows(db: sqlite3.Connection, table: str, owner: str) -> int:
    found = db.execute(f"SELECT count(*) FROM {table} WHERE owner = ?", (owner,))
    return int(found.fetchone()[0])
