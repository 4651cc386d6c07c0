"""The random talkers have the published layout."""

from __future__ import annotations

import math

from cantata_models.moss_tts.random_checkpoint_talker import (
    LOCAL,
    NANO,
    local_config,
    local_tensors,
    nano_config,
    nano_tensors,
)


def test_local_has_the_published_tensors() -> None:
    specs = {spec.name: spec.shape for spec in local_tensors(local_config(LOCAL))}
    assert len(specs) == 425
    parameters = sum(math.prod(shape) for shape in specs.values())
    assert round(parameters / 1e6) == 4130
    assert specs["transformer.embed_tokens.weight"] == (151_936, 2560)
    assert specs["local_transformer.h.0.attn.c_attn.weight"] == (7680, 2560)
    assert specs["local_transformer.h.0.mlp.fc_in.weight"] == (9728, 2560)
    assert specs["audio_embeddings.11.weight"] == (1024, 2560)
    assert specs["local_text_lm_head.weight"] == (2, 2560)


def test_nano_is_as_large_as_published() -> None:
    specs = {spec.name: spec.shape for spec in nano_tensors(nano_config(NANO))}
    parameters = sum(math.prod(shape) for shape in specs.values())
    assert round(parameters / 1e6, 1) == 117.3
    assert specs["transformer.wte.weight"] == (16_384, 768)
    assert specs["transformer.h.11.mlp.fc_out.weight"] == (768, 3072)
    assert specs["audio_embeddings.15.weight"] == (1024, 768)
