"""Compares a backbone that is replayed with one that is called, under vLLM's second model runner.

    TRITON_INTERPRET=1 VLLM_USE_V2_MODEL_RUNNER=1 \
        python -m tiny_talker.recorded_backbone_check CHECKPOINT REQUESTS

Raises:
    AssertionError: they differ, or what a graph reads is not what a step writes.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tiny_talker.second_runner import interpret_triton

POSITIONS = 24
"""Of a step at most."""


def check_stage(
    spec: Any,
    checkpoint: Path,
    requests: Mapping[str, Any],
    sizes: Sequence[int],
    names: set[str],
) -> None:
    """Run the requests called, then replayed.

    Args:
        sizes: of the graphs; some prompts have more positions.
        names: inputs of the model that a step must write where the graphs read.
    """
    import torch
    from vllm.v1.worker.gpu.warmup import warmup_kernels

    from cantata.config import ArDeployment
    from cantata.stages.ar import build_stage
    from cantata.stages.ar.engine import describe_runner
    from recorded_backbone import ReplayedBackbone
    from tiny_talker.driving import listen

    deployment = ArDeployment(slots=4, max_model_len=64, max_num_batched_tokens=POSITIONS)
    stage: Any = build_stage(spec, checkpoint, deployment)
    worker = stage._engine._core.model_executor.driver_worker.worker
    runner = worker.model_runner
    assert "attention CPU_ATTN (FlashAttention missing), graphs NONE" in describe_runner(runner)
    with (
        patch.object(torch.accelerator, "synchronize"),
        # Its kernel is none for Triton's interpreter; no stage asks for it.
        patch.object(runner.structured_outputs_worker, "apply_grammar_bitmask"),
    ):
        # As before a capture on a GPU: requests that no stage knows.
        warmup_kernels(runner, worker.execute_model, worker.sample_tokens)
    called = listen(stage, requests, every=2)
    graphs, state = ReplayedBackbone(runner, sizes), runner.model_state
    with graphs.take_over(), patch.object(state, "prepare_inputs", wraps=state.prepare_inputs):
        written = _watch_inputs(state)
        replayed = listen(stage, requests, every=2)
    dummy = state.prepare_dummy_inputs(1, sizes[-1])
    assert {name for name, value in dummy.items() if value is not None} == names
    for inputs in written:
        for name in names:
            assert inputs[name].data_ptr() == dummy[name].data_ptr(), name
            assert inputs[name].stride() == dummy[name].stride(), name
    assert len(written) > len(graphs.replayed) > 5, "longer steps are called"
    assert len(set(graphs.replayed)) > 2, graphs.replayed
    for name in requests:
        np.testing.assert_allclose(replayed.frames(name), called.frames(name), atol=1e-5)
        if called.row_chunks:
            np.testing.assert_allclose(replayed.rows(name), called.rows(name), atol=1e-5)
    stage.close()


def _watch_inputs(state: Any) -> list[Mapping[str, Any]]:
    written: list[Mapping[str, Any]] = []
    prepare = state.prepare_inputs

    def prepare_inputs(*given: Any) -> Any:
        written.append(prepare(*given))
        return written[-1]

    state.prepare_inputs = prepare_inputs
    return written


def main(checkpoint: Path, requests: Path) -> None:
    """Check a talker with rows that leave, one of latents, and a thinker with axes of positions."""
    interpret_triton()
    from tiny_talker.driving import EXPORTING, THINKER
    from tiny_talker.latent_plugin import LATENT_TALKER

    asked, conversations = pickle.loads(requests.read_bytes())
    check_stage(EXPORTING, checkpoint, asked, (1, 2, 4, 8, 12), {"inputs_embeds"})
    check_stage(LATENT_TALKER, checkpoint, asked, (1, 2, 4, 8), {"inputs_embeds"})
    positioned = {"inputs_embeds", "positions"}
    check_stage(THINKER, checkpoint, conversations, (1, 2, 4, 8, 12), positioned)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
