"""The random checkpoints have the published layout."""

from __future__ import annotations

from cantata_models.qwen25_omni.random_checkpoint import PUBLISHED, checkpoint_tensors, model_config


def test_names_and_shapes_are_those_of_the_published_7b() -> None:
    shapes = {spec.name: spec.shape for spec in checkpoint_tensors(model_config(PUBLISHED))}
    assert {name.split(".")[0] for name in shapes} == {"thinker", "talker", "token2wav"}
    dit, vocoder = "token2wav.code2wav_dit_model", "token2wav.code2wav_bigvgan_model"
    for name, shape in {
        "thinker.model.embed_tokens.weight": (152_064, 3584),
        "talker.model.embed_tokens.weight": (8448, 3584),
        "talker.thinker_to_talker_proj.weight": (896, 3584),
        "talker.model.layers.23.self_attn.q_proj.bias": (1536,),
        "talker.codec_head.weight": (8448, 896),
        f"{dit}.text_embed.codec_embed.weight": (8194, 512),
        f"{dit}.input_embed.proj.weight": (1024, 80 + 128 + 512 + 192),
        f"{dit}.transformer_blocks.21.attn_norm.linear.weight": (6144, 1024),
        f"{vocoder}.ups.0.0.weight": (1536, 768, 11),
        f"{vocoder}.resblocks.17.activations.5.act.alpha": (24,),
    }.items():
        assert shapes[name] == shape, name
