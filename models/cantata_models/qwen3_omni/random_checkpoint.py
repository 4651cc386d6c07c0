"""Checkpoints of seeded random weights in the published format (`python -m`).

A tiny one proves numeric parity with the reference, a reduced one shows how the stages work
together at about a hundredth of the published size. Names and shapes are those of transformers'
model, built without memory; only experts are published one by one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoConfig, Qwen3OmniMoeForConditionalGeneration

from cantata_layers.checkpoint import INDEX_FILE
from cantata_layers.random_rules import (
    Rules,
    Shape,
    code_decoder_rules,
    gain,
    norm,
    specify,
    values,
)
from cantata_layers.random_tensors import PEAKY, TensorSpec, draw, write_json
from cantata_models.qwen3_omni.random_checkpoint_config import (
    CHAT_TEMPLATE,
    GENERATION_CONFIG,
    PREPROCESSOR_CONFIG,
    SIZES,
    TINY,
    Qwen3OmniShape,
    model_config,
    write_tokenizer,
)

CODE2WAV = "code2wav"
RULES: Rules = {
    r"audio_tower\.conv2d\d\.weight$": gain(1.5),
    r"audio_tower\..*[qk]_proj\.weight$|audio_tower\.proj[12]\.weight$": gain(2.0),
    r"patch_embed\.proj\.weight$": gain(3.0),
    r"pos_embed\.weight$": values(0.5),
    r"attn\.qkv\.weight$|merger.*mlp\.0\.weight$": gain(2.0),
    r"(?:embed_tokens|codec_embedding(?:\.\d+)?)\.weight$": values(1.0),
    r"[qk]_norm\.weight$": norm(PEAKY),
    r"o_proj\.weight$|lm_head.*\.weight$|codec_head\.weight$": gain(3.0),
    r"mlp\.gate\.weight$|down_proj\.weight$": gain(2.0),
    r"_projection\.linear_fc2\.weight$": gain(6.0),
}


def checkpoint_tensors(config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield every tensor of a checkpoint with this config.json."""
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    kind: Any = Qwen3OmniMoeForConditionalGeneration
    with torch.device("meta"):
        model = kind(AutoConfig.for_model("qwen3_omni_moe", **arguments))
    for part, network in model.named_children():
        shapes = dict(_publish(f"{part}.", network))
        yield from specify(shapes, _code2wav_rules(config) if part == CODE2WAV else RULES)


def _publish(prefix: str, network: nn.Module) -> Iterator[tuple[str, Shape]]:
    """Yield names and shapes; of joined experts, those of each."""
    for own, tensor in network.state_dict(prefix=prefix).items():
        stem, joined, fused = own.partition(".experts.")
        if not joined:
            yield own, tuple(tensor.shape)
            continue
        count, rows, columns = tensor.shape
        names = ("gate_proj", "up_proj") if fused == "gate_up_proj" else (fused,)
        for index in range(count):
            for name in names:
                yield f"{stem}.experts.{index}.{name}.weight", (rows // len(names), columns)


def _code2wav_rules(config: Mapping[str, Any]) -> Rules:
    code2wav = config["code2wav_config"]
    # Their mean over the codebooks has variance 1.
    embedding = {r"code_embedding\.weight$": values(code2wav["num_quantizers"] ** 0.5)}
    return {**embedding, **code_decoder_rules(len(code2wav["upsample_rates"]))}


ANSWER_END_GAIN, SPEECH_END_GAIN = 1.7, 1.4
"""Of the rows that score the end of an answer and of its speech: many end within a few steps."""

Endings = Mapping[str, tuple[int, float]]
"""A head -> the row of its end, and the gain of that."""


def write_checkpoint(
    folder: Path,
    shape: Qwen3OmniShape,
    seed: int,
    dtype: torch.dtype = torch.float32,
    *,
    speaks: bool = True,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        shape: one of `shapes`.
        seed: of all weights.
        dtype: of all weights.
        speaks: with talker and code2wav; otherwise as Thinking and Captioner are published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(shape, speaks)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", GENERATION_CONFIG)
    write_json(folder / "preprocessor_config.json", PREPROCESSOR_CONFIG)
    write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    write_tokenizer(folder)
    endings = {"thinker.lm_head.weight": (config["im_end_token_id"], ANSWER_END_GAIN)}
    specs = list(checkpoint_tensors(config))
    shards = [[spec for spec in specs if spec.name.startswith("thinker.")]]
    if speaks:
        shards.append([spec for spec in specs if not spec.name.startswith("thinker.")])
        end = config["talker_config"]["codec_eos_token_id"]
        endings["talker.codec_head.weight"] = (end, SPEECH_END_GAIN)
    _write_shards(folder, shards, endings, seed, dtype)
    return folder


def _write_shards(
    folder: Path,
    shards: list[list[TensorSpec]],
    endings: Endings,
    seed: int,
    dtype: torch.dtype,
) -> None:
    places: dict[str, str] = {}
    size = 0
    for number, specs in enumerate(shards, start=1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        tensors = _drawn(specs, endings, seed, dtype)
        save_file(tensors, folder / name, metadata={"format": "pt"})
        (folder / name).chmod(0o644)
        places |= dict.fromkeys(tensors, name)
        size += sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    write_json(folder / INDEX_FILE, index)


def _drawn(
    specs: Iterable[TensorSpec], endings: Endings, seed: int, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    tensors = {}
    for spec in specs:
        values = draw(spec, seed)
        if spec.name in endings:
            row, gain = endings[spec.name]
            values[row] *= np.float32(gain)
        tensors[spec.name] = torch.from_numpy(values).to(dtype)
    return tensors


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint that speaks."""
    write_checkpoint(folder, TINY, seed=1)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.qwen3_omni.random_checkpoint",
        description="Write a checkpoint with random weights (tiny: 3 MB, reduced: 0.2 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SIZES), default="reduced")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--silent", action="store_true", help="leave out talker and code2wav")
    parser.add_argument(
        "--frames", type=int, help="most frames of an answer; few end by themselves"
    )
    arguments = parser.parse_args()
    dtype = torch.float32 if arguments.size == "tiny" else torch.bfloat16
    shape = SIZES[arguments.size]
    folder = write_checkpoint(
        arguments.folder, shape, arguments.seed, dtype, speaks=not arguments.silent
    )
    if arguments.frames is not None:
        path = folder / "generation_config.json"
        generation = json.loads(path.read_text(encoding="utf-8"))
        # The reference's last step of so many makes no frame.
        generation["talker_max_new_tokens"] = arguments.frames + 1
        path.write_text(json.dumps(generation, indent=2), encoding="utf-8")
    print(folder)


if __name__ == "__main__":
    main()
