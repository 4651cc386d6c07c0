"""diffusers' own pipeline in a process of its own: a request a line in, a line of figures out.

python -m cantata_bench.images.reference FOLDER
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any

from cantata.contract.data.errors import ConfigError

READY = "ready"


@dataclass(frozen=True, slots=True)
class ReferenceJob:
    """A picture to draw."""

    prompt: str
    width: int
    height: int
    steps: int
    seed: int
    guidance: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture that was drawn, and the time that it took."""

    seconds: float
    pixels: bytes
    """[H, W, 3] uint8."""


class ReferenceProcess:
    """The process, ready to draw."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def draw(self, order: ReferenceJob) -> Drawn:
        """Draw one picture; blocks.

        Raises:
            RuntimeError: the process has ended.
        """
        _get_pipe(self._process.stdin).write(json.dumps(asdict(order)) + "\n")
        _get_pipe(self._process.stdin).flush()
        answer = json.loads(_read_line(self._process))
        return Drawn(answer["seconds"], base64.b64decode(answer["pixels"]))


@contextmanager
def reference(checkpoint: str) -> Iterator[ReferenceProcess]:
    """diffusers' pipeline of a checkpoint, with as many threads as one of the server's stages.

    Raises:
        ConfigError: diffusers is not installed, or cannot load the checkpoint.
    """
    command = [sys.executable, "-m", "cantata_bench.images.reference", checkpoint]
    environment = {"OMP_NUM_THREADS": "1"} | os.environ
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            try:
                _read_line(process)
            except RuntimeError as error:
                raise ConfigError(
                    "diffusers' pipeline did not start (pip install 'cantata[diffusers]'); its "
                    "output says why"
                ) from error
            yield ReferenceProcess(process)
        finally:
            process.kill()


def _get_pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None, "the process was started with pipes"
    return stream


def _read_line(process: subprocess.Popen[str]) -> str:
    """The next line of its output that is meant for us."""
    for line in _get_pipe(process.stdout):
        if line.startswith((READY, "{")):
            return line
    raise RuntimeError("diffusers' pipeline has ended")


def _load(folder: str) -> Any:
    import torch
    from diffusers import DiffusionPipeline

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    pipeline: Any = DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _draw(pipeline: Any, order: ReferenceJob) -> dict[str, Any]:
    import numpy as np
    import torch

    began_s = time.perf_counter()
    picture = pipeline(
        prompt=order.prompt,
        negative_prompt=" ",
        true_cfg_scale=order.guidance,
        num_inference_steps=order.steps,
        width=order.width,
        height=order.height,
        generator=torch.Generator("cpu").manual_seed(order.seed),
    ).images[0]
    seconds = time.perf_counter() - began_s
    pixels = np.asarray(picture.convert("RGB")).tobytes()
    return {"seconds": seconds, "pixels": base64.b64encode(pixels).decode("ascii")}


def main() -> None:
    """Answer until the input ends."""
    pipeline = _load(sys.argv[1])
    print(READY, flush=True)
    for line in sys.stdin:
        print(json.dumps(_draw(pipeline, ReferenceJob(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
