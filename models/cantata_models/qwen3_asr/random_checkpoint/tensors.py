"""Names, shapes and sizes of the random tensors.

Names and shapes are those of transformers' model, built without memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from transformers import AutoConfig, Qwen3ASRForConditionalGeneration

from cantata_layers.random_rules import Rules, gain, norm, specify, values
from cantata_layers.random_tensors import TensorSpec
from cantata_models.qwen3_asr.config import PUBLISHED, SAVED_AGAIN

RULES: Rules = {
    r"[qk]_norm\.weight$": norm(3.0),
    r"o_proj\.weight$": gain(3.0),
    r"down_proj\.weight$": gain(2.0),
    r"embed_tokens\.weight$": values(1.0),
    r"lm_head\.weight$": gain(3.0),
    r"conv2d\d\.weight$": gain(1.5),
    r"audio_tower.*[qk]_proj\.weight$": gain(2.0),
    r"linear_[12]\.weight$": gain(2.0),
}


def checkpoint_tensors(config: Mapping[str, Any], *, is_tied: bool) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint under transformers' names.

    Args:
        config: transformers' config.json.
        is_tied: whether the head is the table of embeddings, and so no tensor of its own.
    """
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        model = Qwen3ASRForConditionalGeneration(  # type: ignore[no-untyped-call]
            AutoConfig.for_model("qwen3_asr", **arguments)
        )
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
        if not (is_tied and name.startswith(SAVED_AGAIN.head))
    }
    yield from specify(shapes, RULES)


def aligner_tensors(config: Mapping[str, Any], classes: int) -> Iterator[TensorSpec]:
    """Yield every tensor of a forced aligner, whose head is as large as its classes.

    Args:
        config: as `checkpoint_tensors`.
        classes: of time.
    """
    for spec in checkpoint_tensors(config, is_tied=False):
        is_head = spec.name.startswith(SAVED_AGAIN.head)
        yield replace(spec, shape=(classes, spec.shape[1])) if is_head else spec


def to_published(spec: TensorSpec) -> str:
    """The name that the publisher gives a tensor."""
    ours = (SAVED_AGAIN.network, SAVED_AGAIN.head, SAVED_AGAIN.encoder, *SAVED_AGAIN.projector)
    theirs = (PUBLISHED.network, PUBLISHED.head, PUBLISHED.encoder, *PUBLISHED.projector)
    begin, other = next(
        pair for pair in zip(ours, theirs, strict=True) if spec.name.startswith(pair[0])
    )
    return other + spec.name.removeprefix(begin)
