"""The text encoder: transformers' Qwen2.5-VL in its smallest form."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from cantata_models.sketch.training.words import DROPPED, VOCABULARY, CaptionPrompts

WIDTH = 96


def text_encoder_config(prompts: CaptionPrompts) -> Qwen2_5_VLConfig:
    """Describes two text layers, and the least vision tower that the class can be built with."""
    token = prompts.tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": 3 * WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "default",
            "mrope_section": [2, 5, 5],
            "rope_theta": 10_000.0,
        },
        "bos_token_id": prompts.padding,
        "eos_token_id": token("<|im_end|>"),
        "pad_token_id": prompts.padding,
    }
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": WIDTH,
        "fullatt_block_indexes": [0],
    }
    return Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        tie_word_embeddings=True,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )


def new_text_encoder(prompts: CaptionPrompts) -> Qwen2_5_VLForConditionalGeneration:
    """Makes an untrained text encoder for these prompts."""
    config = text_encoder_config(prompts)
    return Qwen2_5_VLForConditionalGeneration(config)


def encode_text(
    encoder: Qwen2_5_VLForConditionalGeneration, prompts: CaptionPrompts, tokens: Tensor
) -> Tensor:
    """Embeds the tokens of `CaptionPrompts.batch`, after the final norm: `[n, T, width]`.

    The attention is causal: the prompt's beginning is the same for all and is computed once, and
    the padding on the right needs no mask.
    """
    network = encoder.model.language_model
    beginning = torch.tensor([prompts.ids("")[:DROPPED]])
    kept = network(input_ids=beginning, use_cache=True).past_key_values
    kept.batch_repeat_interleave(len(tokens))
    states: Tensor = network(input_ids=tokens, past_key_values=kept).last_hidden_state
    return states
