"""Write ../goldens with transformers' Qwen3-Omni: `make parity MODEL=omni`.

The goldens are float64's, rounded to float32. Random networks amplify rounding, so the thinker's
also say how far the reference's own float32 is from them: no float32 can be expected to be nearer.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.qwen3_omni.config import RESERVED_CODES
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.parity.reference import Qwen3OmniObserved, Qwen3OmniReference
from cantata_models.qwen3_omni.tests.parity.scenarios import (
    GOLDENS,
    MIN_GAP,
    SCENARIOS,
    Qwen3OmniScenario,
)

ROW_STRIDE = 13
"""Every 13th value of the talker's prompt rows is kept. 13 is coprime to their width."""
PCM_STRIDE = 37
"""Every 37th sample is kept. 37 is coprime to every rate of the decoder, so all phases occur."""
CODEC_FRAMES = 130
"""More than the decoder's window."""
PENALTY = 1.05

Arrays = dict[str, NDArray[Any]]


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's weights."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def codec_frames(count: int, codebooks: int, codes: int) -> NDArray[np.int64]:
    """[count, codebooks] frames without any pattern."""
    return np.random.RandomState(7).randint(0, codes, (count, codebooks)).astype(np.int64)


def rms(values: NDArray[Any]) -> float:
    """Root mean square; 0 of nothing."""
    return float(np.sqrt(np.square(values).sum() / max(values.size, 1)))


def spoken(scores: torch.Tensor, codes: int, end: int) -> torch.Tensor:
    """[..., V] scores -> [..., codes + 1]: of the codes that may be chosen, the end code last."""
    return torch.cat([scores[..., :codes], scores[..., end : end + 1]], dim=-1)


def answer_scores(observed: Qwen3OmniObserved) -> NDArray[Any]:
    """[T, V / 5]: every fifth score of each token of the answer."""
    return torch.stack(observed.answer_scores).numpy()[:, ::5]


def build_golden(
    observed: Qwen3OmniObserved, rounded: Qwen3OmniObserved, codes: int, end: int
) -> Arrays:
    """Return the arrays of a scenario's golden.

    Raises:
        ValueError: float32 answers something else than float64.
    """
    if not np.array_equal(observed.answer, rounded.answer):
        raise ValueError("the reference's float32 chooses other tokens than its float64")
    golden: Arrays = {
        "tokens": observed.tokens.astype(np.int16),
        "answer": observed.answer.astype(np.int16),
        "positions": observed.positions,
        "answer_scores": answer_scores(observed),
        "answer_scores_rounding": np.array(rms(answer_scores(rounded) - answer_scores(observed))),
    }
    if observed.codes is None:
        return golden
    assert observed.talker_rows is not None
    assert observed.talker_positions is not None
    assert observed.wave is not None
    return golden | {
        "media_rows": observed.media_rows,
        "media_rows_rounding": np.array(rms(rounded.media_rows - observed.media_rows)),
        "talker_rows": observed.talker_rows.reshape(-1)[::ROW_STRIDE],
        "talker_positions": observed.talker_positions,
        "codes": observed.codes.astype(np.int16),
        "first_scores": spoken(torch.stack(observed.first_scores), codes, end).numpy(),
        "samples": np.array(len(observed.wave)),
        "wave": observed.wave[::PCM_STRIDE],
    }


def gaps(observed: Qwen3OmniObserved, codes: int, end: int) -> Iterator[float]:
    """Yield distances between the two best scores of the reference's choices.

    Raises:
        ValueError: our version of the reference's rules would have chosen another code.
    """
    for scores in observed.answer_scores[: len(observed.answer)]:
        yield _distance(scores)
    if observed.codes is None:
        return
    yield observed.residual_gap
    said = observed.codes[:, 0]
    for step, raw in enumerate(observed.first_scores):
        scores = spoken(raw, codes, end)
        for code in set(said[:step].tolist()):
            scores[code] *= 1 / PENALTY if scores[code] > 0 else PENALTY
        if step < len(said) and int(scores.argmax()) != said[step]:
            raise ValueError(f"step {step}: expected {said[step]}, found {int(scores.argmax())}")
        yield _distance(scores)


def write_scenario(
    reference: Qwen3OmniReference,
    single: Qwen3OmniReference,
    scenario: Qwen3OmniScenario,
    arrays: Arrays,
) -> None:
    """Add a scenario's golden and say what is in it.

    Args:
        reference: in float64.
        single: in float32.
        scenario: which.
        arrays: gains the golden.
    """
    talker = reference.model.config.talker_config
    codes = talker.text_config.vocab_size - RESERVED_CODES
    end = talker.codec_eos_token_id
    observed = reference.answer(scenario)
    golden = build_golden(observed, single.answer(scenario), codes, end)
    arrays |= {f"{scenario.name}/{name}": value for name, value in golden.items()}
    gap = min(gaps(observed, codes, end))
    frames = 0 if observed.codes is None else len(observed.codes)
    ended = observed.answer[-1] == reference.model.config.im_end_token_id
    print(
        f"{scenario.name}: {len(observed.tokens)} tokens, {len(observed.media_rows)} of media; "
        f"answer {len(observed.answer)}{'' if ended else ', cut'}; {frames} frames"
        f"{', cut' if frames == scenario.max_frames else ''}; gap {gap:.1e}"
        f"{'  TOO NEAR' if gap < MIN_GAP else ''}",
        flush=True,
    )


def write_codec(reference: Qwen3OmniReference, arrays: Arrays) -> None:
    """Add the decoder's sound of frames without any pattern."""
    config = reference.model.config.code2wav_config
    frames = codec_frames(CODEC_FRAMES, config.num_quantizers, config.codebook_size)
    wave = reference.decode(torch.from_numpy(frames))
    arrays |= {"code2wav/samples": np.array(len(wave)), "code2wav/wave": wave[::PCM_STRIDE]}
    print(f"code2wav: {len(wave)} samples, rms {wave.std():.2f}, peak {np.abs(wave).max():.2f}")


def _distance(scores: torch.Tensor) -> float:
    best = torch.topk(scores, 2).values
    return float(best[0] - best[1])


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    arrays: Arrays = {}
    sums: dict[str, str] = {}
    for seed in sorted({scenario.seed for scenario in SCENARIOS}):
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_checkpoint(Path(scratch), TINY, seed)
            sums[str(seed)] = checksum(folder)
            reference = Qwen3OmniReference(folder, torch.float64)
            single = Qwen3OmniReference(folder, torch.float32)
        for scenario in SCENARIOS:
            if scenario.seed == seed:
                write_scenario(reference, single, scenario, arrays)
        if "code2wav/wave" not in arrays:
            write_codec(reference, arrays)
    (GOLDENS / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n")
    for name, value in arrays.items():
        if value.dtype == np.float64:
            arrays[name] = value.astype(np.float32)
    np.savez_compressed(GOLDENS / "omni.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
