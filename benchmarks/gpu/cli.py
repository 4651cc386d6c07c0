"""Measure Qwen3-TTS, MOSS-TTS and VoxCPM2 at their published sizes, with random weights, on one
NVIDIA GPU.

Each part runs in its own process. If it fails, its results so far are kept:

  env          versions, the card and its free memory
  codec        the streaming speech-tokenizer decoder of Qwen3-TTS: time of a step by rows and
               frames, launched by Python and as a CUDA graph (torch, NumPy and safetensors; about
               3 minutes)
  predictor    its residual code predictor: time of a step for 1 to 64 requests, greedy and sampled,
               likewise (the same packages; about 1 minute)
  step         the talker's whole step, backbone and predictor, as `engine: graphs` runs it: of 1
               to 64 requests, and of prompts of 16 to 64 positions, likewise (the same packages;
               about 2 minutes)
  profile      the kernels of one step of the three, by time
  moss_codec   the tokenizers' decoders of MOSS-TTS-Local and MOSS-TTS-Nano, as `codec`
  moss_frames  their local transformers, as `predictor`
  patches      VoxCPM2's solver and local encoder for 1 to 16 requests, of 4 and of 10 steps,
               likewise
  serve        the whole server of Qwen3-TTS with both stages on the GPU: time to the first packet,
               real-time factor and throughput at 1, 8, 16 and 64 streams (requirements/cuda.txt:
               vLLM's CUDA build, or --engine graphs without it; about 5 minutes; skipped where
               something is missing)
  open_loop    the same server, sampled, with 1, 6, 10 and 20 requests a second that arrive at
               random (fixed seed), then 64 streams: time to the first packet, underruns, throughput

Nothing is downloaded. The scripts run from this checkout; only `serve` needs it installed, too.
Random checkpoints are written to a temporary folder. Qwen3-TTS's takes a minute, and 2.5 GB (0.6b)
or 4.5 GB (1.7b) of disk and of memory; Local's tokenizer takes 8.5 GB. `--shape tiny --device cpu`
shows in a minute that the scripts work.

Results: OUT/gpu.json, OUT/gpu.md (tables, with published figures of others) and a log of each
part. Exit code: 0, or 1 if a part failed; a part that was skipped has not failed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from cantata_models.qwen3_tts.random_checkpoint import PUBLISHED, TINY_LARGE, write_checkpoint
from gpu.part import OWN_PARTS, PARTS, SKIPPED
from gpu.report import PartResult, markdown

SOURCES = [
    str(Path(__file__).resolve().parents[2] / n) for n in ("backend", "models", "benchmarks")
]
ENGINES = ("vllm", "graphs")
LIMIT_S = 1200.0
"""Most seconds of one part."""
MIN_S = 5.0
"""With fewer seconds left, a part does not begin."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parsed(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    results: dict[str, PartResult] = {}
    end_s = time.monotonic() + options.total
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = options.checkpoint or Path(folder)
        if set(options.parts) - set(OWN_PARTS) and not (checkpoint / "config.json").exists():
            checkpoint = _written(checkpoint, options.shape)
        for part in options.parts:
            limit_s = min(options.limit, end_s - time.monotonic())
            if limit_s < MIN_S:
                results[part] = PartResult("skipped", "no time is left", 0.0, [])
            else:
                print(f"{part}: begins", flush=True)
                tiny = options.shape == "tiny"
                results[part] = run_part(
                    *(part, checkpoint, options.device, tiny, options.out, limit_s),
                    engine=options.engine,
                )
            print(f"{part}: {results[part].summary}", flush=True)
            about = {"began": began, "shape": options.shape, "engine": options.engine}
            about |= _machine(options.device)
            _write(options.out, about, results)
    print((options.out / "gpu.md").resolve())
    return exit_code(results)


def run_part(
    part: str,
    checkpoint: Path,
    device: str,
    tiny: bool,
    out: Path,
    limit_s: float = LIMIT_S,
    engine: str = ENGINES[0],
) -> PartResult:
    """Measure one part of `PARTS` in a process of its own.

    Args:
        out: folder for its rows and its log; the result has the rows of a failed part too.
        limit_s: after so many seconds it is ended.
        engine: of a server's talker.
    """
    rows, log = out / f"{part}.jsonl", out / f"{part}.log"
    rows.unlink(missing_ok=True)
    command = [sys.executable, "-m", "gpu.part", part, str(checkpoint), str(rows)]
    command += ["--device", device, "--engine", engine, *(["--tiny"] if tiny else [])]
    path = os.pathsep.join([*SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        try:
            ended = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": path},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=limit_s,
                check=False,
            ).returncode
            reason = _last_line(log)
        except subprocess.TimeoutExpired:
            ended, reason = -1, f"not done after {limit_s:.0f} s"
    outcome = {0: "measured", SKIPPED: "skipped"}.get(ended, "failed")
    found = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    return PartResult(
        outcome=outcome,
        reason="" if ended == 0 else reason or f"exit code {ended}",
        seconds=round(time.monotonic() - began, 1),
        rows=[json.loads(line) for line in found],
    )


def exit_code(results: Mapping[str, PartResult]) -> int:
    """1 if a part failed."""
    return int(any(result.outcome == "failed" for result in results.values()))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/gpu/run.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument(
        "--shape", choices=[*PUBLISHED, "tiny"], default="1.7b", help="size of Qwen3-TTS"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help="of the server's talker; graphs needs no vLLM",
    )
    parser.add_argument(
        "--parts",
        type=lambda text: text.split(","),
        default=list(PARTS),
        help=f"parts to run, comma-separated: {','.join(PARTS)} (default: all)",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        help="folder for Qwen3-TTS's random checkpoint, kept for later calls (default: none is)",
    )
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="most seconds of one part")
    parser.add_argument(
        "--total", type=float, default=math.inf, help="most seconds of the whole call"
    )
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"--parts: {', '.join(unknown)}; valid: {', '.join(PARTS)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error(
            f"--device cuda: PyTorch {torch.__version__} sees no CUDA device; "
            "--shape tiny --device cpu tries the scripts without one"
        )
    return options


def _written(folder: Path, shape: str) -> Path:
    """A checkpoint of stock voices; the tiny one has a projection, as the 1.7B has."""
    if shape == "tiny":
        return write_checkpoint(folder, TINY_LARGE, "custom_voice", 0)
    print(f"a random checkpoint of {shape} is being written", flush=True)
    return write_checkpoint(folder, PUBLISHED[shape], "custom_voice", 0, torch.bfloat16)


def _machine(device: str) -> dict[str, Any]:
    """Where it was measured."""
    described: dict[str, Any] = {
        "device": device,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    if device == "cuda":
        gpu = torch.cuda.get_device_properties(0)
        described |= {"gpu": gpu.name, "gpu_gib": round(gpu.total_memory / 2**30, 1)}
    return described


def _write(out: Path, about: Mapping[str, Any], results: Mapping[str, PartResult]) -> None:
    parts = {name: result.as_json() for name, result in results.items()}
    text = json.dumps({**about, "parts": parts}, indent=2)
    (out / "gpu.json").write_text(text + "\n", encoding="utf-8")
    (out / "gpu.md").write_text(markdown(about, results), encoding="utf-8")


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
