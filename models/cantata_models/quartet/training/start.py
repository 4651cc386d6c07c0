"""The networks begin as hibari's, from the ONNX file in its package.

Its matrices are 8-bit integers with a scale; here they are floats again. What tells speakers apart
begins silent: each voice is hibari's `heart` with the wrong accent, until it is trained.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from cantata_models.quartet.network import PhoneEncoder, QuartetNetwork, SpeakerBlock

SPEAKER_SPREAD = 0.3
_QUANTIZED, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"

Arrays = dict[str, npt.NDArray[np.float32]]


def make_network(stock: int, seed: int = 6) -> QuartetNetwork:
    """A network that speaks as hibari does, whoever the speaker."""
    torch.manual_seed(seed)
    network = QuartetNetwork(stock)
    _silence_speakers(network)
    arrays = read_arrays()
    spectrum, prosody = network.spectrum, network.prosody
    _copy_encoder(spectrum.phones, arrays, "m.text", "", "Transpose_2")
    _copy_encoder(prosody.phones, arrays, "pn.text", "_1", "Transpose_25", "_4")
    for name, module in (
        ("m.dec_in", spectrum.frames_in),
        ("m.dec_norm", spectrum.norm),
        ("pn.dur.0", prosody.duration_in),
        ("pn.dur.2", prosody.duration_out),
        ("pn.pro_in", prosody.contour_in),
        ("pn.pro_out", prosody.contour_out),
    ):
        _copy(module, arrays[f"{name}.weight"], arrays[f"{name}.bias"])
    _copy_linear(spectrum.out, arrays, "head", "m.head.bias")
    for own, theirs in ((spectrum, "dec"), (prosody, "pro")):
        prefix = "m.dec" if theirs == "dec" else "pn.pro"
        for place, block in enumerate(own.blocks):
            _copy_block(block, arrays, f"{prefix}.{place}", f"{theirs}.{place}", "")
    return network


def read_arrays() -> Arrays:
    """The file's parameters by name; a matrix is [inputs, outputs], named by what it transposes."""
    import onnx  # with the judges alone; trainings that go on do without
    from onnx import numpy_helper

    model = onnx.load_from_string((files("hibari") / "assets/hibari.onnx").read_bytes())
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    arrays: Arrays = {}
    for name, values in stored.items():
        if name.endswith(_QUANTIZED):
            matrix = name.removesuffix(_QUANTIZED)
            zero = stored[matrix + _ZERO].astype(np.float32)
            arrays[matrix.lstrip("/")] = (values.astype(np.float32) - zero) * stored[
                matrix + _SCALE
            ]
        elif name.startswith(("m.", "pn.")):
            arrays[name] = values.astype(np.float32)
    return arrays


def _silence_speakers(network: QuartetNetwork) -> None:
    for name, parameter in network.named_parameters():
        if name.endswith("speakers.stock.weight"):
            nn.init.normal_(parameter, std=SPEAKER_SPREAD)
        elif ".speakers." in name:
            continue  # recordings: as random as they began
        elif "speaker" in name or name.endswith(("duration_bias.weight", "contour_bias.weight")):
            nn.init.zeros_(parameter)


def _copy(module: nn.Module, weight: npt.NDArray[np.float32], bias: object) -> None:
    found = dict(module.named_parameters())
    with torch.no_grad():
        found["weight"].copy_(torch.from_numpy(weight))
        found["bias"].copy_(torch.from_numpy(np.asarray(bias)))


def _copy_linear(linear: nn.Module, arrays: Arrays, matrix: str, bias: str) -> None:
    _copy(linear, np.ascontiguousarray(arrays[f"{matrix}/Transpose_output_0"].T), arrays[bias])


def _copy_block(block: nn.Module, arrays: Arrays, prefix: str, matrices: str, ending: str) -> None:
    assert isinstance(block, SpeakerBlock)
    _copy(block.depthwise, arrays[f"{prefix}.dw.weight"], arrays[f"{prefix}.dw.bias"])
    _copy(block.norm, arrays[f"{prefix}.norm.weight"], arrays[f"{prefix}.norm.bias"])
    _copy_linear(block.expand, arrays, f"{matrices}/pw1{ending}", f"{prefix}.pw1.bias")
    _copy_linear(block.contract, arrays, f"{matrices}/pw2{ending}", f"{prefix}.pw2.bias")
    with torch.no_grad():
        block.gamma.copy_(torch.from_numpy(arrays[f"{prefix}.gamma"]))


def _copy_encoder(
    encoder: PhoneEncoder,
    arrays: Arrays,
    prefix: str,
    ending: str,
    heads: str,
    layer_ending: str = "",
) -> None:
    with torch.no_grad():
        encoder.embedding.weight.copy_(torch.from_numpy(arrays[f"{prefix}.emb.weight"]))
    for place, block in enumerate(encoder.blocks):
        _copy_block(block, arrays, f"{prefix}.convs.{place}", f"convs.{place}", ending)
    layer = f"{prefix}.attn"
    for name, norm in (
        (f"{layer}.norm1", encoder.attention_norm),
        (f"{layer}.norm2", encoder.linear_norm),
        (f"{prefix}.norm", encoder.norm),
    ):
        _copy(norm, arrays[f"{name}.weight"], arrays[f"{name}.bias"])
    bias = arrays[f"{layer}.self_attn.in_proj_bias"]
    _copy(encoder.heads_in, np.ascontiguousarray(arrays[f"{heads}_output_0"].T), bias)
    out = f"{layer}.self_attn.out_proj.bias"
    _copy_linear(encoder.heads_out, arrays, f"out_proj{layer_ending}", out)
    _copy_linear(encoder.expand, arrays, f"linear1{layer_ending}", f"{layer}.linear1.bias")
    _copy_linear(encoder.contract, arrays, f"linear2{layer_ending}", f"{layer}.linear2.bias")
