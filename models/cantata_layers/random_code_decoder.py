"""Rules for the weights of a decoder of codes: sliding transformer, upsampling, wave stages."""

from __future__ import annotations

from cantata_layers.random_rules import Rules, gain, upsampling, values


def code_decoder_rules(stages: int) -> Rules:
    """Return the rules for a decoder of so many wave stages."""
    last = rf"decoder\.{stages + 2}\.conv"
    return {
        # Keeps the wave within -1..1, because clipping would hide faults.
        rf"{last}\.weight$": gain(0.05),
        rf"{last}\.bias$": values(0.01),
        r"self_attn\.[qk]_proj|mlp\.down_proj|pwconv2\.weight$": gain(2.0),
        r"self_attn\.o_proj": gain(3.0),
        r"layer_scale\.scale$|\.gamma$": values(0.1, 0.3),
        r"\.(?:alpha|beta)$": values(0.3),
        r"upsample\.\d+\.0\.conv\.weight$": upsampling(taps=1),
        r"block\.1\.conv\.weight$": upsampling(taps=2),
        r"conv2\.conv\.weight$": gain(0.4),
    }
