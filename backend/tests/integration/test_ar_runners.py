"""Both of vLLM's model runners speak the same frames, sampled ones too."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cantata.config import ArDeployment
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.driving import CONVERSATIONS, EXPORTING, THINKER, listen, varied_payloads
from tiny_talker.latent_plugin import LATENT_TALKER

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton not installed"),
]

TESTS = Path(__file__).parents[1]


@pytest.mark.thorough
def test_second_runner_equals_first(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path)
    requests = varied_payloads(5)
    requests = {n: replace(r, max_frames=10, min_frames=6) for n, r in requests.items()}
    (tmp_path / "requests").write_bytes(pickle.dumps((requests, CONVERSATIONS)))
    second_runner = subprocess.Popen(
        [sys.executable, "-m", "tiny_talker.second_runner", ".", "requests", "frames.npz"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "TRITON_INTERPRET": "1",
            "VLLM_USE_V2_MODEL_RUNNER": "1",
        },
    )
    deployment = ArDeployment(slots=8, max_model_len=128, max_num_batched_tokens=256)
    stage = build_stage(EXPORTING, tmp_path, deployment)
    expected = listen(stage, requests)
    stage.close()
    stage = build_stage(LATENT_TALKER, tmp_path, deployment)
    latents = listen(stage, requests)
    stage.close()
    stage = build_stage(THINKER, tmp_path, deployment)
    thoughts = listen(stage, CONVERSATIONS)
    stage.close()
    assert second_runner.wait(timeout=200) == 0
    found = np.load(tmp_path / "frames.npz")
    for name in requests:
        np.testing.assert_array_equal(found[f"{name}/frames"], expected.frames(name), err_msg=name)
        np.testing.assert_allclose(found[f"{name}/rows"], expected.rows(name), atol=1e-5)
        np.testing.assert_allclose(found[f"{name}/latents"], latents.frames(name), atol=1e-5)
    for name in CONVERSATIONS:
        np.testing.assert_array_equal(found[f"{name}/tokens"], thoughts.frames(name), err_msg=name)
