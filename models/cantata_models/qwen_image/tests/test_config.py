"""What is read of a checkpoint's files, and what is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import Family, few_steps_schedule, load_config
from cantata_layers.qwen_image.defaults import LoraFile, drawing_defaults
from cantata_layers.qwen_image.schedule import noise_shares
from cantata_models.qwen_image.plugin import PLUGIN
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "checkpoint", VARIANTS["edit-2511"], 1)


def change(path: Path, **values: Any) -> None:
    fields = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(fields | values), encoding="utf-8")


def test_what_is_read(folder: Path) -> None:
    config = load_config(folder)
    assert config.family is Family.EDIT_PLUS
    assert config.transformer.still_references
    assert config.transformer.width == 32
    assert config.pixels_per_token == 16
    assert config.schedule.terminal == 0.02
    assert PLUGIN.unused_stages is not None
    assert not PLUGIN.unused_stages(folder)


def test_a_checkpoint_for_text_has_no_encoder_of_references(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, VARIANTS["image"], 1)
    assert PLUGIN.unused_stages is not None
    assert set(PLUGIN.unused_stages(folder)) == {"vae_encode"}


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("transformer/config.json", {"guidance_embeds": True}, "guidance_embeds true"),
        ("transformer/config.json", {"use_additional_t_cond": True}, "use_additional_t_cond"),
        ("transformer/config.json", {"use_layer3d_rope": True}, "use_layer3d_rope"),
        ("transformer/config.json", {"axes_dims_rope": [4, 6, 8]}, "add up to"),
        ("transformer/config.json", {"patch_size": 1}, "patch_size must be 2"),
        ("transformer/config.json", {"num_layers": "3"}, "num_layers must be int"),
        ("transformer/config.json", {"joint_attention_dim": 64}, "hidden_size 48"),
        ("transformer/config.json", {"in_channels": 32, "out_channels": 8}, "z_dim 16"),
        ("vae/config.json", {"input_channels": 4}, "input_channels 4"),
        ("vae/config.json", {"attn_scales": [1.0]}, "attn_scales"),
        ("vae/config.json", {"latents_mean": [0.0]}, "16 numbers each"),
        ("vae/config.json", {"latents_std": [0.0] * 16}, "positive"),
        ("scheduler/scheduler_config.json", {"invert_sigmas": True}, "invert_sigmas"),
        ("scheduler/scheduler_config.json", {"time_shift_type": "linear"}, "'exponential'"),
        ("scheduler/scheduler_config.json", {"shift_terminal": 2.0}, "shift_terminal"),
        ("scheduler/scheduler_config.json", {"num_train_timesteps": 100}, "valid: 1000"),
        ("model_index.json", {"_class_name": "QwenImageLayeredPipeline"}, "QwenImagePipeline"),
        ("model_index.json", {"_class_name": "QwenImage21Pipeline"}, "is not served"),
        ("model_index.json", {"vae": ["diffusers", "AutoencoderKLWan"]}, "AutoencoderKLWan"),
        ("model_index.json", {"processor": None}, "processor must be a list"),
    ],
)
def test_what_is_not_served_is_named(
    folder: Path, file: str, values: dict[str, Any], message: str
) -> None:
    change(folder / file, **values)
    with pytest.raises(ConfigError, match=message):
        load_config(folder)


def test_unknown_keys_are_ignored(folder: Path) -> None:
    before = load_config(folder)
    change(folder / "transformer/config.json", some_new_key=3)
    change(folder / "vae/config.json", is_residual=False)
    assert load_config(folder) == before


def test_defaults_follow_from_the_name_of_a_lora(folder: Path) -> None:
    schedule = load_config(folder).schedule
    plain = drawing_defaults(schedule, [LoraFile(Path("style-8steps.safetensors"))])
    assert (plain.steps, plain.guidance, plain.schedule) == (50, 4.0, schedule)
    for name, steps in (
        ("Qwen-Image-Lightning-8steps-V1.1.safetensors", 8),
        ("Qwen-Image-Edit-2509-Lightning-4steps-V1.0-bf16.safetensors", 4),
    ):
        few = drawing_defaults(schedule, [LoraFile(Path(name))])
        assert (few.steps, few.guidance, few.schedule) == (steps, 1.0, few_steps_schedule())


def test_a_distilled_checkpoint_is_known_by_its_schedule(folder: Path) -> None:
    shift = 1.0986122886681098
    path = folder / "scheduler/scheduler_config.json"
    change(path, base_shift=shift, max_shift=shift, shift_terminal=None)
    schedule = load_config(folder).schedule
    assert schedule.few_steps
    assert drawing_defaults(schedule, ()).guidance == 1.0


def test_shares_of_noise() -> None:
    """Lightning's are those of a shift by 3, whatever the size."""
    shares = noise_shares(few_steps_schedule(), 4, 4096)
    expected = [3 * s / (1 + 2 * s) for s in (1, 0.75, 0.5, 0.25)]
    assert shares == pytest.approx([*expected, 0])
    assert shares == noise_shares(few_steps_schedule(), 4, 16)


def test_a_fixed_shift_and_a_single_step(folder: Path) -> None:
    path = folder / "scheduler/scheduler_config.json"
    assert noise_shares(load_config(folder).schedule, 1, 100) == (1.0, 0.0)
    change(path, use_dynamic_shifting=False, shift=2.0, shift_terminal=None)
    schedule = load_config(folder).schedule
    assert noise_shares(schedule, 2, 100) == pytest.approx((1, 2 / 3, 0))
