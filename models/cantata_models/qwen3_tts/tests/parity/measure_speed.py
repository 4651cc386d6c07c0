"""Measures the reference package's speed; `cantata_bench.reference_compare` runs it, reads JSON.

The package has one call, for one or several texts. The call returns after the last sample.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from cantata_models.qwen3_tts.tests.parity.reference_package import load_model


def speak(model: Any, texts: list[str], frames: int) -> tuple[float, float]:
    """Return seconds taken and seconds of audio; greedy, so that only the length limit ends it."""
    began = time.perf_counter()
    made, sample_rate = model.generate_custom_voice(
        text=texts,
        speaker=model.get_supported_speakers()[0],
        max_new_tokens=frames + 1,
        do_sample=False,
        subtalker_dosample=False,
    )
    return time.perf_counter() - began, sum(len(samples) for samples in made) / sample_rate


def measure(model: Any, texts: list[str], frames: int, rounds: int) -> dict[str, Any]:
    """Time several calls with the same texts; the first call does not count."""
    found = [speak(model, texts, frames) for _ in range(1 + rounds)][1:]
    return {
        "texts": len(texts),
        "whole_s": [whole_s for whole_s, _ in found],
        "audio_s": [audio_s for _, audio_s in found],
    }


def main() -> None:
    """Print one JSON object; OMP_NUM_THREADS sets the number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="one with stock voices")
    parser.add_argument("--text", required=True)
    parser.add_argument("--texts", type=int, nargs="+", required=True, help="in one call")
    parser.add_argument("--frames", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--dtype", required=True, help="as torch names it")
    arguments = parser.parse_args()
    model = load_model(arguments.checkpoint, getattr(torch, arguments.dtype), "sdpa")
    calls = [
        measure(model, [arguments.text] * count, arguments.frames, arguments.rounds)
        for count in arguments.texts
    ]
    print(json.dumps({"threads": torch.get_num_threads(), "calls": calls}))


if __name__ == "__main__":
    main()
