"""Published checkpoints load, in their own formats; what is wrong with another one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import PICKLE_FILE, SINGLE_FILE
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    TINY_NANO,
    write_local,
    write_nano,
)
from cantata_models.moss_tts.tests.talker_driver import load_local, load_nano

pytestmark = pytest.mark.vllm

Tensors = dict[str, torch.Tensor]
CODES = "audio_embeddings.1.weight"
BIAS = "local_transformer.h.0.attn.c_attn.bias"


def changed_local(folder: Path, change: Callable[[Tensors], None]) -> Path:
    path = write_local(folder, TINY_LOCAL, 1) / SINGLE_FILE
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    return folder


def changed_nano(folder: Path, change: Callable[[Tensors], None]) -> Path:
    path = write_nano(folder, TINY_NANO, 1) / PICKLE_FILE
    tensors = torch.load(path, weights_only=True)
    change(tensors)
    torch.save(tensors, path)
    return folder


def test_bfloat16_and_a_pickle(tmp_path: Path) -> None:
    """Nano's form: the heads are stored too, and the stop head is two rows of the text table."""
    folder = write_nano(tmp_path, TINY_NANO, 1, torch.bfloat16)
    tensors = torch.load(folder / PICKLE_FILE, weights_only=True)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    network = load_nano(folder).network
    table = tensors["transformer.wte.weight"].float()
    assert torch.equal(network.transformer.text_table, table)
    assert torch.equal(network.frames.local_text_lm_head.weight, table[[9, 7]])
    assert torch.equal(network.frames.audio_embeddings[1], tensors[CODES].float())


def test_a_head_may_be_stored_twice_and_a_table_that_is_not_used(tmp_path: Path) -> None:
    def store(tensors: Tensors) -> None:
        tensors["text_lm_head.weight"] = tensors["transformer.embed_tokens.weight"].clone()
        tensors["audio_lm_heads.1.weight"] = tensors[CODES].clone()
        tensors["local_transformer.wte.weight"] = torch.zeros(3, 3)

    network = load_local(changed_local(tmp_path, store)).network
    tensors = load_file(tmp_path / SINGLE_FILE)
    assert torch.equal(
        network.frames.local_text_lm_head.weight, tensors["local_text_lm_head.weight"]
    )


def untied(tensors: Tensors) -> None:
    tensors["audio_lm_heads.1.weight"] = tensors[CODES] + 1


def without(name: str) -> Callable[[Tensors], None]:
    def remove(tensors: Tensors) -> None:
        del tensors[name]

    return remove


def wider(name: str) -> Callable[[Tensors], None]:
    def widen(tensors: Tensors) -> None:
        tensors[name] = torch.zeros(*tensors[name].shape[:-1], tensors[name].shape[-1] + 1)

    return widen


def renamed(name: str, other: str) -> Callable[[Tensors], None]:
    def rename(tensors: Tensors) -> None:
        tensors[other] = tensors.pop(name)

    return rename


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(BIAS), r"lacks weights of local_transformer\.h\.0\.attn\.c_attn\.bias"),
        (without(CODES), r"lacks weights of audio_embeddings\.1"),
        (without("transformer.norm.weight"), r"lacks weights of transformer\.norm\.weight"),
        (wider(BIAS), r"c_attn\.bias of \[193\] does not fit the talker: expected \[192\]"),
        (wider(CODES), r"embeddings\.1\.weight of \[64, 65\] does not fit the talker"),
        (wider("transformer.layers.1.self_attn.k_proj.weight"), r"k_proj\.weight .* does not fit"),
        (renamed(CODES, "audio_embeddings.9.weight"), r"embeddings\.9\.weight .* does not fit"),
        (renamed(BIAS, "local_transformer.h.7.bias"), r"the talker has no parameter .*h\.7\.bias"),
        (untied, r"audio_lm_heads\.1 is not its table of embeddings"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, change: Callable[[Tensors], None], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_local(changed_local(tmp_path, change))


def test_nano_needs_its_text_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lacks weights of transformer\.wte\.weight"):
        load_nano(changed_nano(tmp_path, without("transformer.wte.weight")))
