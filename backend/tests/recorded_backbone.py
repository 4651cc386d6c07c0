"""vLLM's graphs of a backbone on a CPU: its own capture, and its own choice of a graph for each
step, with operators that are called again in place of CUDA's graphs.

Attention alone is not replayed but called with the step's requests: that of a CPU plans each step
on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import get_forward_context, set_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.platforms import current_platform
from vllm.v1.worker.gpu import cudagraph_utils
from vllm.v1.worker.gpu.attn_utils import build_slot_mappings_by_layer
from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

from replayed_operators import RecordedOperators

_attend_by_vllm = Attention.forward


@torch.library.custom_op("cantata_tests::attend", mutates_args=())
def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, layer: str
) -> torch.Tensor:
    """[N, heads * size]: of the step's positions; zeros for those that pad, and while recording."""
    context = get_forward_context()
    attended = torch.zeros_like(query)
    if layer in (context.attn_metadata or {}):
        count = len(context.slot_mapping[layer])
        given = (rows[:count].contiguous() for rows in (query, key, value))
        attended[:count] = _attend_by_vllm(context.no_compile_layers[layer], *given)
    return attended


def _call_attention(
    layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **unused: Any
) -> torch.Tensor:
    return _attend(query, key, value, layer.layer_name)  # type: ignore[no-any-return]


class ReplayedBackbone(ModelCudaGraphManager):  # type: ignore[misc]
    """Captures the steps of a second model runner and replays them.

    Args:
        runner: of a loaded engine; requests may follow.
        sizes: positions of the steps.
    """

    def __init__(self, runner: Any, sizes: Sequence[int]) -> None:
        config = runner.vllm_config.compilation_config
        config.cudagraph_capture_sizes = list(sizes)
        config.max_cudagraph_capture_size = sizes[-1]
        self.replayed: list[int] = []
        """Positions of each replay, with those that pad."""
        self._runner = runner
        self._step: tuple[Any, torch.Tensor] = ({}, torch.zeros(0))
        with patch.object(type(current_platform), "get_global_graph_pool", lambda _: None):
            super().__init__(
                runner.vllm_config, runner.device, CUDAGraphMode.FULL, runner.decode_query_len
            )

    @contextmanager
    def take_over(self) -> Iterator[None]:
        """Inside, the runner replays."""
        runner, state = self._runner, self._runner.model_state
        prepare = state.prepare_attn

        def prepare_attn(
            batch: Any, mode: Any, tables: Any, slots: torch.Tensor, *rest: Any, **options: Any
        ) -> Any:
            if options.get("for_capture"):
                return {}
            tables = tuple(table[: batch.num_reqs] for table in tables)
            slots = slots[:, : batch.num_tokens]
            made = prepare(batch, CUDAGraphMode.NONE, tables, slots, *rest, **options)
            self._step = made, slots
            return made

        with (
            patch.object(Attention, "forward", _call_attention),
            patch.object(state, "prepare_attn", prepare_attn),
            patch.object(runner, "cudagraph_manager", self),
        ):
            self._capture_all()
            yield

    def _capture_all(self) -> None:
        runner = self._runner
        with (
            patch.object(cudagraph_utils, "graph_capture", lambda device: nullcontext()),
            patch.object(cudagraph_utils, "capture_pool", lambda *unused: nullcontext()),
            patch.object(self, "_capture_stream", lambda _: None),
            patch.object(torch.cuda, "CUDAGraph", RecordedOperators),
            patch.object(torch.cuda, "graph", lambda graph, pool, stream: graph),
        ):
            self.capture(
                runner.model,
                runner.model_state,
                runner.input_buffers,
                runner.intermediate_tensors,
                runner.block_tables,
                runner.attn_groups,
                runner.kv_cache_config,
            )

    def run_fullgraph(self, desc: Any) -> Any:
        """Replay, where attention finds the step's requests."""
        self.replayed.append(desc.num_tokens)
        metadata, slots = self._step
        by_layer = build_slot_mappings_by_layer(slots, self._runner.kv_cache_config)
        with set_forward_context(
            metadata, self._runner.vllm_config, desc.num_tokens, slot_mapping=by_layer
        ):
            return super().run_fullgraph(desc)
