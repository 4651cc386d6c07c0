"""Padded graphs on a CPU, where a replay calls the function on the static tensors."""

from __future__ import annotations

import logging

import pytest
import torch

from cantata.stages.common.graphs import RowGraphs

CPU = torch.device("cpu")
SPARE = (torch.tensor([4]), torch.zeros(1, 3))


class Adder:
    """Adds rows to totals by slot; the last slot is nobody's."""

    def __init__(self, fails_from: int = 100) -> None:
        self.totals = torch.zeros(5, 3)
        self.called_with: list[list[int]] = []
        self._fails_from = fails_from

    def __call__(self, slots: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        if len(slots) == self._fails_from:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")
        self.called_with.append(slots.tolist())
        self.totals[slots] += rows
        return self.totals[slots]


def test_only_the_spare_row_is_touched_while_capturing() -> None:
    adder = Adder()
    assert RowGraphs(adder, CPU, "adding").capture((SPARE[0], torch.ones(1, 3)), max_rows=3)
    assert adder.called_with == [[4], [4, 4], [4, 4, 4, 4]]
    assert not adder.totals[:4].any()


def test_rows_are_padded_and_results_are_their_own() -> None:
    adder, rows = Adder(), torch.arange(9.0).view(3, 3)
    graphs = RowGraphs(adder, CPU, "adding")
    graphs.capture(SPARE, max_rows=4)
    adder.called_with.clear()
    first = graphs(torch.tensor([2, 0, 1]), rows)
    second = graphs(torch.tensor([0, 1, 3]), rows)
    assert adder.called_with == [[2, 0, 1, 4], [0, 1, 3, 4]]
    assert first.tolist() == rows.tolist()
    assert second.tolist() == [[3, 5, 7], [9, 11, 13], [6, 7, 8]]
    assert adder.totals[2].tolist() == [0, 1, 2]


def test_what_was_not_captured_is_called_as_it_is() -> None:
    adder = Adder()
    graphs = RowGraphs(adder, CPU, "adding")
    graphs.capture(SPARE, max_rows=2)
    adder.called_with.clear()
    more = torch.tensor([0, 1, 2]), torch.ones(3, 3)
    assert graphs.holds(more[0][:2], more[1][:2])
    assert not graphs.holds(*more)
    assert graphs(*more).tolist() == torch.ones(3, 3).tolist()
    assert graphs(more[0][:1], torch.ones(1, 1)).tolist() == [[2, 2, 2]], "a row of another form"
    assert adder.called_with == [[0, 1, 2], [0]]


def test_a_capture_that_raises_is_logged_once_and_called_plainly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    adder, rows = Adder(fails_from=4), torch.ones(3, 3)
    graphs = RowGraphs(adder, CPU, "adding")
    with caplog.at_level(logging.WARNING):
        assert not graphs.capture(SPARE, max_rows=16)
    assert [record.getMessage() for record in caplog.records] == [
        "adding: no CUDA graph of 4 rows or more, so it runs without: "
        "operation not permitted when stream is capturing"
    ]
    adder.called_with.clear()
    assert graphs(torch.tensor([0, 1, 2]), rows).tolist() == rows.tolist()
    assert graphs(torch.tensor([0, 1]), rows[:2]).tolist() == (2 * rows[:2]).tolist()
    assert adder.called_with == [[0, 1, 2], [0, 1]], "the smaller graphs are kept"
    assert graphs.holds(torch.tensor([0, 1]), rows[:2])
