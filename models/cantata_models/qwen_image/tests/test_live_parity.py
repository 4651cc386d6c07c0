"""The reference itself, where it is installed: the same names of weights, the same picture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from cantata_layers.checkpoint import read_tensors
from cantata_layers.qwen_image.config import WEIGHTS
from cantata_models.qwen_image.tests.checks import check_pixels
from cantata_models.qwen_image.tests.drawing import Studio
from cantata_models.qwen_image.tests.parity.scenarios import QwenImageScenario, checkpoint_for
from threads import threads

pytestmark = pytest.mark.filterwarnings("default")
"""Of the reference's own warnings."""
UNRECORDED = QwenImageScenario("unrecorded", "A yellow bird in a tree", 80, 64, 3, seed=123)


@pytest.fixture(scope="module")
def diffusers() -> Any:
    """WHY offline: nothing here may ask a model hub."""
    with patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}):
        return pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield checkpoint_for(UNRECORDED, tmp_path_factory.mktemp("checkpoint"))


def test_a_random_checkpoint_has_the_references_tensors(diffusers: Any, checkpoint: Path) -> None:
    for part, kind in (
        ("transformer", diffusers.QwenImageTransformer2DModel),
        ("vae", diffusers.AutoencoderKLQwenImage),
    ):
        with torch.device("meta"):
            network = kind.from_config(kind.load_config(checkpoint / part))
        theirs = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        ours = read_tensors(checkpoint / part, stem=WEIGHTS)
        assert {name: tuple(tensor.shape) for name, tensor in ours} == theirs


def test_a_random_text_encoder_has_the_references_tensors(checkpoint: Path) -> None:
    from transformers import Qwen2_5_VLForConditionalGeneration

    kind: Any = Qwen2_5_VLForConditionalGeneration
    _, found = kind.from_pretrained(checkpoint / "text_encoder", output_loading_info=True)
    assert not any(found.values()), found


def test_a_picture_that_was_not_recorded(diffusers: Any, checkpoint: Path) -> None:
    (request,) = UNRECORDED.requests()
    pipe = diffusers.QwenImagePipeline.from_pretrained(checkpoint, local_files_only=True)
    pipe.set_progress_bar_config(disable=True)
    theirs = pipe(
        request.prompt,
        negative_prompt=" ",
        true_cfg_scale=request.guidance,
        width=request.width,
        height=request.height,
        num_inference_steps=request.steps,
        generator=torch.Generator("cpu").manual_seed(request.seed),
        output_type="np",
    ).images[0]
    ours = Studio(checkpoint).draw(request).pixels
    check_pixels(ours, (theirs * 255).round().astype(np.uint8))
