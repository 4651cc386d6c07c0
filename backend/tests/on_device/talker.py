"""A served talker in the test's own process: the model as vLLM builds it, without vLLM's engine.

Its layers are vLLM's. Attention alone is replaced, by one that keeps nothing: each position gets
its own value. So a talker makes other frames than a served one, but by all of its own code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from vllm.config import (
    CompilationConfig,
    CompilationMode,
    DeviceConfig,
    VllmConfig,
    set_current_vllm_config,
)
from vllm.distributed.parallel_state import (
    destroy_distributed_environment,
    destroy_model_parallel,
    init_distributed_environment,
    initialize_model_parallel,
    model_parallel_is_initialized,
)
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.parameter import BasevLLMParameter
from vllm.utils.torch_utils import set_default_torch_dtype

from cantata.config import ArDeployment
from cantata.contract.model.factory import resolve
from cantata.stages.ar.engine import make_vllm_config
from cantata.stages.ar.frames import FrameRequest, NewFrame, StopReason
from cantata.stages.ar.served_model import register_talker
from cantata.stages.ar.talker_step import ServedTalker, pad_rows
from on_device.short_source import ShortSource
from pretended_device import Pretended


@contextmanager
def vllm_layers() -> Iterator[None]:
    """Inside, vLLM's layers can be built and run; they are one process's."""
    config = VllmConfig(
        device_config=DeviceConfig(device="cpu"),
        compilation_config=CompilationConfig(mode=CompilationMode.NONE),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        set_current_vllm_config(config),
        patch.object(Attention, "forward", _own_values),
        patch.object(BasevLLMParameter, "__new__", _on_host),
    ):
        if model_parallel_is_initialized():  # by an engine that other tests use
            yield
            return
        init_distributed_environment(1, 0, f"file://{Path(folder, 'meeting')}", 0, "gloo")
        initialize_model_parallel()
        try:
            yield
        finally:
            destroy_model_parallel()
            destroy_distributed_environment()


def _on_host(cls: type[Any], data: torch.Tensor, **unused: Any) -> Any:
    """A weight of vLLM's own, which cannot lie on a device that is none before it is loaded."""
    held = data.held if isinstance(data, Pretended) else data
    return torch.nn.Parameter.__new__(cls, held, requires_grad=False)


def _own_values(
    layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **unused: Any
) -> torch.Tensor:
    """[N, heads * size]: each position attends to itself alone."""
    values = value.view(len(query), layer.num_kv_heads, 1, -1)
    shared = values.expand(-1, -1, layer.num_heads // layer.num_kv_heads, -1)
    return shared.reshape(len(query), -1)


@dataclass(slots=True)
class _Running:
    next_position: int
    """The first that has not been computed."""
    planned: int
    """Positions of the next step."""
    frames_left: int
    resumable: bool


class DeviceEngine:
    """Implements `FrameEngine` on any device. All requests step together, whole prompts too.

    Args:
        factory: of the stage.
        max_frames: of a request, whatever it asks for.
    """

    def __init__(
        self,
        factory: str,
        checkpoint: Path,
        deployment: ArDeployment,
        device: torch.device,
        max_frames: int,
    ) -> None:
        name = register_talker(f"{factory}@{device}", resolve(factory))
        self._config = make_vllm_config(
            name, checkpoint, deployment.model_copy(update={"device": "cpu"})
        )
        self._config.device_config.device = device
        dtype = self._config.model_config.dtype
        # As vLLM's loader: what the model makes while it is built lies on the device by itself.
        with set_current_vllm_config(self._config), set_default_torch_dtype(dtype):
            with device:
                self.talker: ServedTalker = initialize_model(vllm_config=self._config)
            self.talker.load_checkpoint(checkpoint)
            _lay_out_weights(self.talker, device)
        self._step, self._device = self.talker.talker_step, device
        self.talker.open = partial(ShortSource, self.talker.open, max_frames)
        self._running: dict[str, _Running] = {}

    def add(self, request: FrameRequest) -> None:
        """As `FrameEngine.add`, without priorities."""
        run = self._running.get(request.request_id)
        if run is not None:
            run.frames_left += request.max_frames
            run.resumable = request.resumable
            return
        run = _Running(0, request.prompt_len, request.max_frames, request.resumable)
        self._running[request.request_id] = run

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._running.pop(request_id, None)

    def has_work(self) -> bool:
        """Whether a request may make a frame."""
        return any(run.frames_left > 0 for run in self._running.values())

    def get_counts(self) -> dict[str, int]:
        """What is held now."""
        return {"requests": len(self._running)}

    def close(self) -> None:
        """Nothing to free."""

    @torch.inference_mode()
    def step(self) -> Sequence[NewFrame]:
        """A frame of every request that may make one."""
        active = {name: run for name, run in self._running.items() if run.frames_left > 0}
        states, counts = self._step.states, np.array([run.planned for run in active.values()])
        first = np.array([run.next_position for run in active.values()])
        self._step.schedule([states.get_slot(name) for name in active], first, counts)
        hidden = self._forward(first, counts)
        last = torch.from_numpy(np.cumsum(counts) - 1).to(self._device)
        talker: Any = self.talker
        tokens, frames = self._step.sample(talker.compute_logits(hidden[last]))
        values = frames.cpu().numpy()
        values = values.astype(np.float32 if frames.is_floating_point() else np.int32)
        ended = (tokens == self.talker.end_code).cpu().tolist() if self.talker.end_code else []
        return [
            NewFrame(name, values[[row]], self._advance(name, bool(ended and ended[row])))
            for row, name in enumerate(active)
        ]

    def _forward(self, first: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> torch.Tensor:
        rows, positions = self._step.input_rows(), self._step.rotary_positions()
        if positions is None:
            counted = [np.arange(start, start + n) for start, n in zip(first, counts, strict=True)]
            positions = torch.from_numpy(np.concatenate(counted)).to(self._device)
        padded = max(self.talker.min_rows - len(rows), 0)
        positions = torch.nn.functional.pad(positions, (0, padded))
        talker: Any = self.talker
        with set_forward_context(None, self._config):
            hidden: torch.Tensor = talker(None, positions, None, pad_rows(rows, talker.min_rows))
        return hidden[: len(rows)]

    def _advance(self, name: str, ended: bool) -> StopReason | None:
        run = self._running[name]
        run.next_position, run.planned = run.next_position + run.planned, 1
        run.frames_left -= 1
        if ended or not (run.frames_left or run.resumable):
            del self._running[name]
            return StopReason.END_CODE if ended else StopReason.LENGTH
        return None


def _lay_out_weights(talker: Any, device: torch.device) -> None:
    """Let vLLM's products lay out their weights, as its loader does after loading."""
    for module in talker.modules():
        for name, weight in module._parameters.items():
            if isinstance(weight, BasevLLMParameter):
                moved = weight.data.to(device)
                module._parameters[name] = torch.nn.Parameter(moved, requires_grad=False)
        method = getattr(module, "quant_method", None)
        if isinstance(method, UnquantizedLinearMethod):
            module.quant_method = UnquantizedLinearMethod()
        if isinstance(method, UnquantizedLinearMethod | UnquantizedEmbeddingMethod):
            module.cpu_linear = torch.nn.functional.linear  # torch's own products, as on a GPU
        elif method is not None:
            method.process_weights_after_loading(module)
