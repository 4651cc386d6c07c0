"""Measure how long the stages, without a server, and the reference take for the same speech.

`python -m cantata_models.pocket_tts.tests.parity.time_speech FOLDER` in either environment; the
reference's measures the reference. Give both the same core (`taskset -c 0`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

from cantata_models.pocket_tts.config import load_config

TEXT = "Nobody had seen it."
ROUNDS = 3
NEVER = 1000.0
"""No score reaches this."""


def main() -> None:
    """Print the seconds of computing for each second of sound, and those to the first sound."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--streams", type=int, default=1, help="at once; the reference has one")
    parser.add_argument("--frames", type=int, default=50)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder, frames = arguments.folder, arguments.frames
    is_reference = find_spec("pocket_tts") is not None
    streams = 1 if is_reference else arguments.streams
    if is_reference:
        speak = prepare_reference(folder, frames)
    else:
        speak = prepare_stages(folder, frames, streams)
    speak()
    sound = load_config(folder).mimi.frame_seconds * frames * streams
    rounds = [speak() for _ in range(ROUNDS)]
    first = median(to_first for to_first, _ in rounds)
    whole = median(to_end for _, to_end in rounds)
    name = "reference" if is_reference else "stages"
    print(f"{name}: {whole / sound:.3f} s for each second, first sound after {1000 * first:.0f} ms")


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
