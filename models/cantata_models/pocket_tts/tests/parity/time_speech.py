"""Measure how long the stages, without a server, and the reference take for the same speech.

`taskset -c 0 python -m cantata_models.pocket_tts.tests.parity.time_speech FOLDER --beside PYTHON`
in the stages' environment, where PYTHON is the reference's: both speak in turns on one core, and
what the processor spent is compared, because other programs may share the core.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

from cantata_models.pocket_tts.config import load_config

TEXT = "Nobody had seen it."
ROUNDS = 5
NEVER = 1000.0
"""No score reaches this."""
MARK = "took"
"""In front of what a process that takes turns says."""


def main() -> None:
    """Print the seconds of computing for each second of sound, and those to the first sound."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beside", type=Path, help="the Python of the reference's environment")
    parser.add_argument("--streams", type=int, default=1, help="at once; the reference has one")
    parser.add_argument("--frames", type=int, default=50)
    arguments = parser.parse_args()
    folder, frames, streams = arguments.folder, arguments.frames, arguments.streams
    if arguments.beside is None:
        take_turns(folder, frames, streams)
        return
    given = ["-m", __spec__.name, str(folder), f"--frames={frames}"]
    stages = start([sys.executable, *given, f"--streams={streams}"])
    reference = start([str(arguments.beside), *given])
    rounds = [(ask(stages), ask(reference)) for _ in range(1 + ROUNDS)][1:]
    seconds = load_config(folder).mimi.frame_seconds * frames
    for name, side, count in (("stages", 0, streams), ("reference", 1, 1)):
        first, _, spent = (median(both[side][column] for both in rounds) for column in range(3))
        each = spent / seconds / count
        print(f"{name}: {each:.3f} s for each second, first sound after {1000 * first:.0f} ms")
    ratios = sorted(ours[2] / streams / theirs[2] for ours, theirs in rounds)
    print(f"{median(ratios):.2f} times as long ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    for process in (stages, reference):
        process.communicate()


def start(command: list[str]) -> subprocess.Popen[str]:
    """Start a process that takes turns."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def ask(process: subprocess.Popen[str]) -> tuple[float, ...]:
    """Let it speak once; seconds to the first sound, to the end, and of the processor."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith(MARK):
            return tuple(map(float, line.removeprefix(MARK).split()))
    raise SystemExit(f"a process has ended: {process.args!r}")


def take_turns(folder: Path, frames: int, streams: int) -> None:
    """Speak once for each line of the standard input."""
    torch.set_num_threads(1)
    if find_spec("pocket_tts") is not None:
        speak = prepare_reference(folder, frames)
    else:
        speak = prepare_stages(folder, frames, streams)
    for _ in sys.stdin:
        before = time.process_time()
        first, whole = speak()
        print(MARK, first, whole, time.process_time() - before, flush=True)


def prepare_reference(folder: Path, frames: int) -> Callable[[], tuple[float, float]]:
    """Return what speaks by the reference package: the times to the first sound and to the end."""
    from cantata_models.pocket_tts.tests.parity.reference_package import load_reference

    model = load_reference(folder)
    model.eos_threshold, model._estimate_max_gen_len = NEVER, lambda tokens: frames
    state = model.get_state_for_audio_prompt(folder / "embeddings" / "alba.safetensors")

    def speak() -> tuple[float, float]:
        begin, ends = time.perf_counter(), list[float]()
        for _ in model.generate_audio_stream(state, TEXT):
            ends.append(time.perf_counter() - begin)
        return ends[0], ends[-1]

    return speak


def prepare_stages(folder: Path, frames: int, streams: int) -> Callable[[], tuple[float, float]]:
    """Return what speaks by the stages, in this process."""
    from cantata.config import ArDeployment, CodecDeployment
    from cantata.contract.data.request import SpeechRequest
    from cantata.stages import codec
    from cantata.stages.ar import build_stage
    from cantata_models.pocket_tts.plugin import CODEC, PIPELINE, TALKER
    from cantata_models.pocket_tts.request_builder import load_builder

    options = {"eos_threshold": NEVER, "max_new_tokens": frames}
    builder = load_builder(folder)
    deployment = ArDeployment(slots=streams, max_model_len=512, prefix_caching=True)
    talker = build_stage(PIPELINE.stage(TALKER), folder, deployment)
    decoder = codec.build_stage(PIPELINE.stage(CODEC), folder, CodecDeployment(slots=streams))

    def speak() -> tuple[float, float]:
        begin, ends = time.perf_counter(), list[float]()
        for index in range(streams):
            request = SpeechRequest(TEXT, "alba", seed=index, options=options)
            (piece,) = builder.build(f"request{index}", request)
            talker.add(piece.request_id, piece.inputs[TALKER], batch=False)
            decoder.add(piece.request_id, None, batch=False)
        while talker.has_work():
            decoder.receive(talker.step().chunks)
            while decoder.has_work():
                if decoder.step().chunks:
                    ends.append(time.perf_counter() - begin)
        return ends[0], ends[-1]

    return speak


if __name__ == "__main__":
    main()
