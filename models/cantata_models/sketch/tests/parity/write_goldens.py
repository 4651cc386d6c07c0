"""`python -m cantata_models.sketch.tests.parity.write_goldens`: records what diffusers computes.

Needs diffusers 0.42.1 on the path; the tests need only what this writes.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Any

import torch
from safetensors.torch import save_file

from cantata_models.sketch.tests.parity.small import (
    AUTOENCODER,
    GOLDENS,
    STEPS,
    TOKENS,
    TRANSFORMER,
    fill,
    fill_flat,
    inputs,
)
from cantata_models.sketch.training.checkpoint_files import SCHEDULE
from cantata_models.sketch.training.networks.autoencoder import Autoencoder, published_tensors


def velocity(diffusers: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    """Runs diffusers' transformer."""
    network = diffusers.QwenImageTransformer2DModel(
        **asdict(TRANSFORMER), out_channels=TRANSFORMER.in_channels // 4
    )
    fill(network)
    found: torch.Tensor = network(
        hidden_states=given["noisy"],
        encoder_hidden_states=given["text"],
        encoder_hidden_states_mask=given["mask"],
        timestep=given["times"],
        img_shapes=[[(1, 4, 4)]] * 2,
        return_dict=False,
    )[0]
    return found


def autoencoder(diffusers: Any, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Runs both halves of diffusers' autoencoder."""
    flat = Autoencoder(AUTOENCODER)
    flat.load_state_dict(fill_flat(flat.state_dict()))
    network = diffusers.AutoencoderKLQwenImage(
        **asdict(AUTOENCODER) | {"dim_mult": list(AUTOENCODER.dim_mult)},
        temperal_downsample=[False] * 3,
    )
    network.load_state_dict(published_tensors(flat))
    mean = network.encode(given["picture"][:, :, None]).latent_dist.mode()
    picture = network.decoder(network.post_quant_conv(given["latents"][:, :, None]))
    return {"mean": mean[:, :, 0], "picture": picture[:, :, 0]}


def sigmas(diffusers: Any) -> torch.Tensor:
    """Asks diffusers' scheduler, with the pipeline's shift, for the times of a picture."""
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler.from_config(SCHEDULE)
    module = import_module("diffusers.pipelines.qwenimage.pipeline_qwenimage")
    mu = module.calculate_shift(TOKENS, 256, 8192, 0.5, 0.9)
    even = torch.linspace(1, 1 / STEPS, STEPS).tolist()
    scheduler.set_timesteps(sigmas=even, mu=mu)
    times: torch.Tensor = scheduler.sigmas
    return times


def main() -> None:
    diffusers = import_module("diffusers")
    given = inputs()
    with torch.no_grad():
        found = {
            "velocity": velocity(diffusers, given),
            **autoencoder(diffusers, given),
            "sigmas": sigmas(diffusers),
        }
    save_file({name: tensor.contiguous() for name, tensor in found.items()}, GOLDENS)


if __name__ == "__main__":
    main()
