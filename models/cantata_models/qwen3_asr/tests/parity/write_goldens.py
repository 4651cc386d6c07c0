"""Write ../goldens with transformers' Qwen3-ASR: `make parity MODEL=qwen3_asr`.

The goldens are float64's, rounded to float32. Random networks amplify rounding, so they also say
how far the reference's own float32 is from them: no float32 can be expected to be nearer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.qwen3_asr.random_checkpoint import token_ids, write_checkpoint
from cantata_models.qwen3_asr.tests.parity.reference import Qwen3AsrObserved, Qwen3AsrReference
from cantata_models.qwen3_asr.tests.parity.scenarios import (
    GOLDENS,
    MIN_GAP,
    SCENARIOS,
    Qwen3AsrScenario,
)

ROW_STRIDE = 13
"""Every 13th value of the encoder's rows is kept. 13 is coprime to their width."""
SCORE_STRIDE = 5
"""Every 5th score is kept."""

Arrays = dict[str, NDArray[Any]]


def rms(values: NDArray[Any]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.square(values).mean()))


def pick_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """[M, D] -> those values that goldens have."""
    return rows.reshape(-1)[::ROW_STRIDE]


def pick_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """[T, V] -> those that goldens have."""
    return scores[:, ::SCORE_STRIDE]


def build_golden(exact: Qwen3AsrObserved, rounded: Qwen3AsrObserved) -> Arrays:
    """Return the arrays of a scenario's golden.

    Raises:
        ValueError: float32 answers something else than float64.
    """
    if not np.array_equal(exact.answer, rounded.answer):
        raise ValueError("the reference's float32 chooses other tokens than its float64")
    rows, scores = pick_rows(exact.rows), pick_scores(exact.scores)
    return {
        "tokens": exact.tokens.astype(np.int16),
        "answer": exact.answer.astype(np.int16),
        "rows": rows.astype(np.float32),
        "rows_rounding": np.array(rms(pick_rows(rounded.rows) - rows), np.float32),
        "scores": scores.astype(np.float32),
        "scores_rounding": np.array(rms(pick_scores(rounded.scores) - scores), np.float32),
        "text": np.array(exact.text),
        "language": np.array(exact.language),
    }


def describe(scenario: Qwen3AsrScenario, observed: Qwen3AsrObserved, golden: Arrays) -> str:
    """A line for whoever writes the goldens."""
    best = np.sort(observed.scores, axis=1)[:, -2:]
    gap = float((best[:, 1] - best[:, 0]).min())
    ended = observed.answer[-1] in (token_ids()["<|im_end|>"], token_ids()["<|endoftext|>"])
    return (
        f"{scenario.name}: {len(observed.tokens)} tokens, {len(observed.rows)} of the sound; "
        f"answer {len(observed.answer)}{'' if ended else ', cut'}; rounding of rows "
        f"{golden['rows_rounding']:.1e}, of scores {golden['scores_rounding']:.1e}; gap {gap:.1e}"
        f"{'  TOO NEAR' if gap < MIN_GAP else ''}"
    )


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    arrays: Arrays = {}
    for seed, is_tied in sorted({(scenario.seed, scenario.is_tied) for scenario in SCENARIOS}):
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_checkpoint(Path(scratch), seed, is_published=False, is_tied=is_tied)
            exact, single = (
                Qwen3AsrReference(folder, dtype) for dtype in (torch.float64, torch.float32)
            )
        for scenario in SCENARIOS:
            if (scenario.seed, scenario.is_tied) != (seed, is_tied):
                continue
            observed = exact.answer(scenario)
            golden = build_golden(observed, single.answer(scenario))
            arrays |= {f"{scenario.name}/{name}": value for name, value in golden.items()}
            print(describe(scenario, observed, golden), flush=True)
    np.savez_compressed(GOLDENS / "transcripts.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
