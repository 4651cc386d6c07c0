"""Writes a whole checkpoint folder."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.torch import save_file

from cantata_layers.random_rules import Rules, Shape, gain, norm, specify, upsampling, values
from cantata_layers.random_tensors import TensorSpec, draw, write_tensors
from cantata_layers.weights import TakenShapes
from cantata_models.pocket_tts.codec.decoder import MimiDecoder
from cantata_models.pocket_tts.codec.encoder import MimiEncoder
from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.networks.flow_head import FlowHead
from cantata_models.pocket_tts.random_checkpoint.configs import TINY, PocketShape, VoiceFormat
from cantata_models.pocket_tts.random_checkpoint.tokenizers import write_tokenizer
from cantata_models.pocket_tts.sizes import BackboneSizes, PocketConfig

META = torch.device("meta")
CONFIG_FILE = "english.yaml"
VOICE_POSITIONS = 9
RULES: Rules = {
    r"emb_std$": values(0.1, 1.0),
    r"emb_mean$|bos_emb$|bos_before_voice$": values(0.7),
    r"conditioner\.embed\.weight$": values(1.0),
    r"speaker_proj_weight$": gain(1.0),
    r"time_embed\.\d+\.freqs$": values(0.4, 0.6),
    r"alpha$": norm(1.0),
    # Attention that tells positions apart.
    r"in_proj\.weight$": gain(1.4),
    r"adaLN_modulation\.1\.weight$": gain(0.7),
    # Latents about as large as those of recordings.
    r"final_layer\.linear\.weight$": gain(0.7),
    # A text seldom ends by itself at the usual threshold of -4.
    r"out_eos\.weight$": gain(0.5),
    r"out_eos\.bias$": values(0.0, -6.0),
    r"layer_scale_\d\.scale$": values(0.1, 0.5),
    r"upsample\.convtr\.convtr\.weight$": values(0.7),
    r"convtr\.weight$": upsampling(2),
    # Recordings are far from -1..1 most of the time.
    r"encoder\.model\.0\.conv\.weight$": gain(4.0),
    # What a unit adds.
    r"block\.3\.conv\.weight$": gain(0.4),
    # Sound that is loud and seldom clips.
    r"decoder\.model\.11\.conv\.weight$": gain(0.25),
    r"decoder\.model\.11\.conv\.bias$": values(0.01),
}


def write_checkpoint(folder: Path, shape: PocketShape, seed: int) -> Path:
    """Write a checkpoint of one of `configs.SHAPES` into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(shape.config, sort_keys=False, allow_unicode=True)
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
    address = shape.config["weights_path"].partition("@")[0]
    weights = folder / address.rpartition("/")[2]
    # The configuration names a file that has to be there.
    weights.touch()
    write_tokenizer(folder, shape)
    shapes = dict(_list_shapes(folder))
    write_tensors(weights, specify(shapes, RULES), seed, torch.float32)
    (folder / "embeddings").mkdir(exist_ok=True)
    config = load_config(folder)
    for name, kind in shape.voices.items():
        tensors = _make_voice(config.backbone, kind, zlib.crc32(f"{seed}:{name}".encode()))
        save_file(tensors, folder / "embeddings" / f"{name}.safetensors")
    return folder


def _list_shapes(folder: Path) -> Iterator[tuple[str, Shape]]:
    taken, config = TakenShapes(), load_config(folder)
    MimiEncoder(folder, META, taken.read)
    MimiDecoder(folder, META, taken.read)
    yield from taken.shapes.items()
    for name, shape in _list_talker(config):
        yield f"flow_lm.{name}", shape


def _list_talker(config: PocketConfig) -> Iterator[tuple[str, Shape]]:
    sizes = config.backbone
    size, latent = sizes.size, config.mimi.latent
    yield "conditioner.embed.weight", (config.vocabulary + 1, config.rank or size)
    if config.rank is not None:
        yield "conditioner.proj.weight", (size, config.rank)
    yield "bos_emb", (latent,)
    if config.marks_voice:
        yield "bos_before_voice", (1, 1, size)
    yield "input_linear.weight", (size, latent)
    for index in range(sizes.layers):
        layer = f"transformer.layers.{index}"
        for part in ("norm1", "norm2"):
            yield f"{layer}.{part}.weight", (size,)
            yield f"{layer}.{part}.bias", (size,)
        queries = sizes.heads * sizes.head_dim
        yield f"{layer}.self_attn.in_proj.weight", (queries + 2 * sizes.keys, size)
        yield f"{layer}.self_attn.out_proj.weight", (size, queries)
        yield f"{layer}.linear1.weight", (sizes.inner, size)
        yield f"{layer}.linear2.weight", (size, sizes.inner)
    yield "out_norm.weight", (size,)
    yield "out_norm.bias", (size,)
    if sizes.projected:
        yield "z_proj.weight", (sizes.output, size)
    yield "out_eos.weight", (1, sizes.output)
    yield "out_eos.bias", (1,)
    with META:
        head = FlowHead(config)
    for name, tensor in head.state_dict().items():
        yield f"flow_net.{name}", tuple(tensor.shape)


def _make_voice(sizes: BackboneSizes, kind: VoiceFormat, seed: int) -> dict[str, torch.Tensor]:
    """Return a voice of as many positions, among more that are empty."""
    if kind is VoiceFormat.ROWS:
        rows = draw(TensorSpec("audio_prompt", (1, VOICE_POSITIONS, sizes.size), 0.8), seed)
        return {"audio_prompt": torch.from_numpy(rows)}
    tensors = {}
    for index in range(sizes.layers):
        module = f"transformer.layers.{index}.self_attn"
        shape = (2, 1, VOICE_POSITIONS + 3, sizes.kv_heads, sizes.head_dim)
        cache = draw(TensorSpec(module, shape, 1.0), seed)
        cache[:, :, VOICE_POSITIONS:] = np.nan
        tensors[f"{module}/cache"] = torch.from_numpy(cache)
        if kind is VoiceFormat.OLD_STATE:
            tensors[f"{module}/current_end"] = torch.zeros(VOICE_POSITIONS)
        else:
            tensors[f"{module}/offset"] = torch.tensor([VOICE_POSITIONS])
    return tensors


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint."""
    write_checkpoint(folder, TINY, seed=3)
