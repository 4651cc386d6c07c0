"""Names and shapes of the talker's tensors, in both layouts."""

from __future__ import annotations

from collections.abc import Iterator

from cantata_layers.random_qwen3 import PEAKY
from cantata_layers.random_tensors import TensorSpec, linear, norm, weight
from cantata_models.fish_speech.config import CODEBOOKS, Layout
from cantata_models.fish_speech.random_checkpoint.shapes import Shape, StackShape


def talker_tensors(shape: Shape, vocabulary: int) -> Iterator[TensorSpec]:
    """Yield every tensor of the talker."""
    if shape.layout is Layout.S2:
        slow, fast, books = "text_model.model.", "audio_decoder.", "audio_decoder."
    else:
        slow, fast, books = "", "fast_", ""
    size, inner = shape.slow.hidden, shape.fast.hidden
    yield TensorSpec(f"{slow}embeddings.weight", (vocabulary, size), 1.0)
    yield from _stack(slow, shape.slow, normed=shape.normed[0])
    if not shape.tied:
        yield weight(f"{slow}output", vocabulary, size, gain=3.0)
    yield TensorSpec(f"{books}codebook_embeddings.weight", (CODEBOOKS * shape.codes, size), 1.0)
    yield TensorSpec(f"{fast}embeddings.weight", (shape.codes, inner), 1.0)
    yield from _stack(fast, shape.fast, normed=shape.normed[1])
    yield weight(f"{fast}output", shape.codes, inner, gain=3.0)
    if inner != size:
        yield from linear(f"{fast}project_in", size, inner)


def _stack(prefix: str, stack: StackShape, *, normed: bool) -> Iterator[TensorSpec]:
    queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
    for index in range(stack.layers):
        layer = f"{prefix}layers.{index}"
        gain = 1.0 if normed else 2.0
        yield weight(f"{layer}.attention.wqkv", queries + 2 * keys, stack.hidden, gain=gain)
        yield weight(f"{layer}.attention.wo", stack.hidden, queries, gain=3.0)
        if normed:
            yield norm(f"{layer}.attention.q_norm", stack.head_dim, PEAKY)
            yield norm(f"{layer}.attention.k_norm", stack.head_dim, PEAKY)
        yield weight(f"{layer}.feed_forward.w1", stack.ffn, stack.hidden)
        yield weight(f"{layer}.feed_forward.w3", stack.ffn, stack.hidden)
        yield weight(f"{layer}.feed_forward.w2", stack.hidden, stack.ffn, gain=2.0)
        yield norm(f"{layer}.attention_norm", stack.hidden)
        yield norm(f"{layer}.ffn_norm", stack.hidden)
    yield norm(f"{prefix}norm", stack.hidden)
