"""Write ../goldens with the publisher's code: `make parity MODEL=bagel`."""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from cantata_models.bagel.random_checkpoint import TINY, write_checkpoint
from cantata_models.bagel.tests.parity.conversations import CONVERSATIONS, Conversation
from cantata_models.bagel.tests.parity.reference import load_inferencer
from cantata_models.bagel.tests.parity.scenarios import (
    GOLDENS,
    SCENARIOS,
    SEED,
    BagelScenario,
    kept_pixels,
)

APP = {
    False: {"cfg_img_scale": 1.5, "cfg_interval": (0.4, 1.0), "cfg_renorm_type": "global"},
    True: {"cfg_img_scale": 2.0, "cfg_interval": (0.0, 1.0), "cfg_renorm_type": "text_channel"},
}
"""What the publisher's app sets, without pictures in a request and with them."""


class Recorder:
    """Wraps what the inferencer calls, and keeps what passes."""

    def __init__(self, inferencer: Any) -> None:
        self.inferencer, self.latents = inferencer, list[NDArray[np.float32]]()
        self._flow, self._image = inferencer.model._forward_flow, inferencer.decode_image
        inferencer.model._forward_flow = self._step
        inferencer.decode_image = self._decoded
        self._gaps = list[float]()
        inferencer.model.language_model.lm_head.register_forward_hook(self._measured)

    def drawn(self, scenario: BagelScenario) -> dict[str, NDArray[Any]]:
        """Everything of one scenario."""
        self.latents.clear()
        self._gaps.clear()
        torch.manual_seed(scenario.seed)
        random.seed(scenario.seed)
        inputs = [t if isinstance(t, str) else Image.fromarray(t) for t in scenario.terms()]
        settings = {**APP[len(inputs) > 1], **scenario.options}
        made = self.inferencer.interleave_inference(
            inputs,
            cfg_text_scale=scenario.guidance,
            num_timesteps=scenario.steps + 1,
            image_shapes=(scenario.height, scenario.width),
            **settings,
        )
        # The first latents are the noise.
        kept: dict[str, NDArray[Any]] = {
            "latents": np.stack(self.latents),
            "pixels": kept_pixels(np.asarray(made[-1])),
        }
        if scenario.thinks:
            kept["gap"] = np.array(min(self._gaps))
        return {f"{scenario.name}/{name}": value for name, value in kept.items()}

    def answered(self, conversation: Conversation) -> dict[str, NDArray[Any]]:
        """The tokens of one answer, and how far the likeliest one led at least."""
        tokens: list[torch.Tensor] = []
        model = self.inferencer.model
        generate = model.generate_text

        def kept(*given: Any, **named: Any) -> torch.Tensor:
            tokens.append(generate(*given, **named))
            return tokens[-1]

        self._gaps.clear()
        model.generate_text = kept
        terms = [t if isinstance(t, str) else Image.fromarray(t) for t in conversation.terms()]
        self.inferencer.interleave_inference(
            terms,
            think=conversation.thinks,
            understanding_output=True,
            max_think_token_n=conversation.max_tokens + 1,
        )
        model.generate_text = generate
        # The first is the mark of begin.
        values = {"tokens": tokens[0][1:, 0].numpy(), "gap": np.array(min(self._gaps))}
        return {f"{conversation.name}/{name}": value for name, value in values.items()}

    def _measured(self, _module: Any, _given: Any, scores: torch.Tensor) -> None:
        """How far the likeliest token leads."""
        first, second = scores[0].topk(2).values
        self._gaps.append(float(first - second))

    def _step(self, **given: Any) -> Any:
        self.latents.append(given["x_t"].numpy().copy())
        return self._flow(**given)

    def _decoded(self, latent: torch.Tensor, shape: Any) -> Any:
        self.latents.append(latent.numpy().copy())
        return self._image(latent, shape)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clone", type=Path, help="of github.com/ByteDance-Seed/Bagel")
    clone = parser.parse_args().clone
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        checkpoint = write_checkpoint(Path(folder), SEED)
        recorder = Recorder(load_inferencer(clone, checkpoint, TINY))
        made: dict[str, NDArray[Any]] = {}
        for scenario in SCENARIOS:
            made |= recorder.drawn(scenario)
            print(scenario.name, made.get(f"{scenario.name}/gap", ""))
        for conversation in CONVERSATIONS:
            made |= recorder.answered(conversation)
            print(conversation.name, made[f"{conversation.name}/gap"])
    GOLDENS.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS, allow_pickle=False, **made)


if __name__ == "__main__":
    main()
