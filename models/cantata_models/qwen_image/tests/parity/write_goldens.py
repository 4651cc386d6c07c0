"""Write ../goldens with the reference, diffusers (`make parity MODEL=qwen_image`).

It needs diffusers, and peft for LoRA files, beside what the tests need.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import diffusers
import numpy as np
import torch
from diffusers.pipelines.qwenimage import (
    pipeline_qwenimage_edit,
    pipeline_qwenimage_edit_plus,
)
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration, Qwen2VLProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.config import INDEX, Family
from cantata_models.qwen_image.tests.parity.scenarios import (
    AREAS,
    GOLDENS,
    SCENARIOS,
    SERVED,
    STRIDE,
    TILE,
    TILED,
    QwenImageScenario,
    checkpoint_for,
    kept_latents,
    kept_pixels,
    kept_rows,
    picture,
)

Arrays = dict[str, NDArray[Any]]
LEVELS = 255
PUBLISHED_AREA = 1024 * 1024


def load_pipeline(checkpoint: Path) -> Any:
    """The reference's pipeline, without video, which would need torchvision."""
    family = Family(read_json(checkpoint / INDEX).get("_class_name", str))
    kind: Any = getattr(diffusers, family.value)
    if not family.takes_pictures:
        return kind.from_pretrained(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint / "tokenizer")
    images: Any = Qwen2VLImageProcessorPil.from_pretrained(checkpoint / "processor")
    with patch.object(Qwen2VLProcessor, "check_argument_for_proper_class"):
        made: Any = Qwen2VLProcessor
        processor = made(images, tokenizer, None)
    return kind.from_pretrained(checkpoint, processor=processor)


@contextmanager
def bound_areas(scenario: QwenImageScenario, family: Family) -> Iterator[None]:
    """References resized to `AREAS`, but for the scenario with the published sizes."""
    if not family.takes_pictures or scenario is SERVED:
        yield
        return
    areas = AREAS[family]
    edit, plus = pipeline_qwenimage_edit, pipeline_qwenimage_edit_plus
    module = edit if family is Family.EDIT else plus
    right = module.calculate_dimensions

    def smaller(area: int, ratio: float) -> Any:
        return right(areas.kept if area == PUBLISHED_AREA else areas.seen, ratio)

    with patch.object(module, "calculate_dimensions", smaller):
        yield


class Encodings:
    """Notes the embeddings, and passes the kinds of tokens that the pipelines leave out."""

    def __init__(self, model: Any, picture_token: int, passes_kinds: bool = True) -> None:
        self._forward, self._picture_token = model.forward, picture_token
        self._passes_kinds = passes_kinds
        model.forward = self

    def __call__(self, **given: Any) -> Any:
        if given.get("pixel_values") is not None and self._passes_kinds:
            kinds = (given["input_ids"] == self._picture_token).int()
            return self._forward(**given, mm_token_type_ids=kinds)
        return self._forward(**given)


def draw(pipe: Any, scenario: QwenImageScenario, family: Family) -> Arrays:
    """All that the reference makes of a scenario."""
    requests = scenario.requests()
    first = requests[0]
    steps: list[torch.Tensor] = []
    conditions: list[torch.Tensor] = []
    right = pipe.encode_prompt

    def encode(*args: Any, **kwargs: Any) -> Any:
        made = right(*args, **kwargs)
        conditions.append(made[0][0])
        return made

    def note(_pipe: Any, _step: int, _t: Any, given: dict[str, Any]) -> dict[str, Any]:
        steps.append(given["latents"].clone())
        return given

    options: dict[str, Any] = {
        "prompt": first.prompt,
        "true_cfg_scale": first.guidance,
        "num_inference_steps": first.steps,
        "num_images_per_prompt": scenario.pictures,
        "width": first.width,
        "height": first.height,
        "generator": [torch.Generator("cpu").manual_seed(r.seed) for r in requests],
        "callback_on_step_end": note,
        "output_type": "np",
    }
    if first.guidance is not None and first.guidance > 1:
        options["negative_prompt"] = " " if first.negative_prompt is None else first.negative_prompt
    if first.references:
        images = [Image.fromarray(pixels) for pixels in first.references]
        options["image"] = images if family is Family.EDIT_PLUS else images[0]
    with bound_areas(scenario, family), patch.object(pipe, "encode_prompt", encode):
        made = pipe(**options).images
    arrays: Arrays = {
        "latents": kept_latents(torch.stack(steps, dim=1).numpy()),
        "pixels": kept_pixels((made * LEVELS).round().astype(np.uint8)),
    }
    for port, values in zip(("condition", "negative"), conditions, strict=False):
        arrays[port] = kept_rows(values.numpy())
        arrays[f"{port}_rows"] = np.array(len(values))
    return arrays


def load_lora(pipe: Any, checkpoint: Path) -> None:
    """As a user does; Lightning's with the schedule that its publisher names."""
    for path in sorted((checkpoint / "loras").glob("*.safetensors")):
        pipe.load_lora_weights(str(path.parent), weight_name=path.name)
        pipe.fuse_lora()
        pipe.unload_lora_weights()
        if "Lightning" in path.name:
            shifts = {"base_shift": math.log(3), "max_shift": math.log(3), "shift_terminal": None}
            pipe.scheduler = type(pipe.scheduler).from_config(pipe.scheduler.config, **shifts)


def build_goldens(scenario: QwenImageScenario, folder: Path) -> Arrays:
    """All arrays of a scenario."""
    checkpoint = checkpoint_for(scenario, folder)
    family = Family(read_json(checkpoint / INDEX).get("_class_name", str))
    pipe = load_pipeline(checkpoint)
    pipe.set_progress_bar_config(disable=True)
    if scenario.lora is not None:
        load_lora(pipe, checkpoint)
    encoder: Qwen2_5_VLForConditionalGeneration = pipe.text_encoder
    picture_token = int(encoder.config.image_token_id)
    arrays: Arrays = {}
    if family.takes_pictures:
        with patch.object(encoder, "forward", encoder.forward):
            Encodings(encoder, picture_token, passes_kinds=False)
            arrays["condition_as_published"] = draw(pipe, scenario, family)["condition"]
    with patch.object(encoder, "forward", encoder.forward):
        Encodings(encoder, picture_token)
        arrays |= draw(pipe, scenario, family)
    return arrays


def tiling_goldens(folder: Path) -> Arrays:
    """A picture through the autoencoder in tiles, one half after the other."""
    checkpoint = checkpoint_for(SERVED, folder)
    kind: Any = diffusers.AutoencoderKLQwenImage
    network = kind.from_pretrained(checkpoint / "vae")
    network.enable_tiling(TILE, TILE, STRIDE, STRIDE)
    pixels = torch.from_numpy(picture(*TILED, seed=1).astype(np.float32) / LEVELS)
    moments = network.encode((2 * pixels - 1).permute(2, 0, 1)[None, :, None])
    mean = moments.latent_dist.mode()
    made = network.decode(mean).sample[0, :, 0].permute(1, 2, 0)
    shown = ((made * 0.5 + 0.5).clamp(0, 1) * LEVELS).round().to(torch.uint8)
    return {"latents": mean[0, :, 0].numpy(), "pixels": kept_pixels(shown[None].numpy())}


def main() -> None:
    """Write everything."""
    torch.set_num_threads(1)
    GOLDENS.mkdir(exist_ok=True)
    kept: Arrays = {}
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        for scenario in (*SCENARIOS, SERVED):
            arrays = build_goldens(scenario, Path(scratch))
            kept |= {f"{scenario.name}/{name}": values for name, values in arrays.items()}
            print(scenario.name, arrays["latents"].shape, arrays["pixels"].shape, file=sys.stderr)
        arrays = tiling_goldens(Path(scratch))
        kept |= {f"tiling/{name}": values for name, values in arrays.items()}
    save: Any = np.savez_compressed
    save(GOLDENS / "pictures.npz", **kept)


if __name__ == "__main__":
    main()
