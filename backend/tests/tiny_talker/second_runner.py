"""Speaks the requests of a JSON file under vLLM's second model runner, without a GPU.

Its Triton kernels run in Triton's interpreter: correct, but a hundred times too slow to serve.

    TRITON_INTERPRET=1 VLLM_USE_V2_MODEL_RUNNER=1 \
        python -m tiny_talker.second_runner CHECKPOINT REQUESTS.json FRAMES.npz
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
from triton.backends import Backend, backends
from triton.backends.compiler import BaseBackend
from triton.backends.driver import DriverBase


class InterpreterDriver(DriverBase):  # type: ignore[misc]
    """Stands in for a device; the interpreter only checks that it exists."""

    @classmethod
    def is_active(cls) -> bool:
        return True

    def __init__(self) -> None:
        pass

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError

    def get_current_target(self) -> None:
        return None

    def get_active_torch_device(self) -> None:
        return None

    def get_benchmarker(self) -> None:
        return None


def interpret_triton() -> None:
    """Let vLLM find Triton. Call before the first import of vLLM."""
    backends["cpu"] = Backend(compiler=BaseBackend, driver=InterpreterDriver)


def main(checkpoint: Path, requests: Path, frames: Path) -> None:
    """Build a stage, speak all requests together, save [T, Q] frames by request id."""
    interpret_triton()
    # Everything below imports vLLM, which looks at Triton's backends when it is imported.
    from cantata.config import ArDeployment
    from cantata.stages.ar import build_stage
    from tiny_talker.driving import EXPORTING, THINKER, listen
    from tiny_talker.latent_plugin import LATENT_TALKER

    deployment = ArDeployment(
        slots=4, max_model_len=64, max_num_batched_tokens=16, prefix_caching=True
    )
    stage = build_stage(EXPORTING, checkpoint, deployment)
    assert type(stage._engine._runner).__module__ == "vllm.v1.worker.cpu.model_runner"  # type: ignore[attr-defined]
    asked, conversations = pickle.loads(requests.read_bytes())
    listener = listen(stage, asked, every=2)
    assert set(stage.get_counts().values()) == {0}, stage.get_counts()
    stage.close()
    latents = build_stage(LATENT_TALKER, checkpoint, deployment)
    latent_listener = listen(latents, asked)
    latents.close()
    thinker = build_stage(THINKER, checkpoint, deployment)
    thoughts = listen(thinker, conversations)
    thinker.close()
    spoken = {f"{name}/frames": listener.frames(name) for name in asked}
    spoken |= {f"{name}/latents": latent_listener.frames(name) for name in asked}
    spoken |= {f"{name}/tokens": thoughts.frames(name) for name in conversations}
    np.savez(frames, **spoken, **{f"{name}/rows": listener.rows(name) for name in asked})  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
