"""vLLM's configuration for a GPU, made where there is none.

vLLM asks its platform about the card. Here that is vLLM's own for CUDA, with a card of compute
capability 9.0 that is not there; whatever would compute on it fails.

    python -m pretended_card CHECKPOINT

prints a JSON object: by whether there are graphs, what vLLM made of the configuration, and as
`refused` what the stage says of vLLM's first model runner.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tiny_talker.second_runner import interpret_triton


def make_platform() -> Any:
    """vLLM's platform for CUDA, without its kernels."""
    sys.modules["vllm._C_stable_libtorch"] = ModuleType("vllm._C_stable_libtorch")
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.interface import DeviceCapability

    class PretendedCard(CudaPlatformBase):  # type: ignore[misc]
        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> Any:
            return DeviceCapability(9, 0)

        @classmethod
        def get_device_name(cls, device_id: int = 0) -> str:
            return "none"

        @classmethod
        def get_device_total_memory(cls, device_id: int = 0) -> int:
            return 80 << 30

    return PretendedCard()


@contextmanager
def pretended_card() -> Iterator[None]:
    """Inside, all of vLLM that is imported takes this machine for one with a GPU."""
    from vllm import platforms

    here, card = platforms.current_platform, make_platform()
    with ExitStack() as patches:
        patches.enter_context(patch.object(platforms, "_current_platform", card))
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get("current_platform") is here:
                patches.enter_context(patch.object(module, "current_platform", card))
        yield


def describe(checkpoint: Path, *, graphs: bool) -> dict[str, Any]:
    """Return what a GPU's worker would find in the configuration of the tiny talker.

    Args:
        checkpoint: of the tiny talker.
        graphs: the deployment's `cuda_graphs`.
    """
    from vllm.v1.attention.backend import AttentionCGSupport

    from cantata.config import ArDeployment
    from cantata.contract.model.factory import resolve
    from cantata.stages.ar.backbone_graphs import list_graph_sizes
    from cantata.stages.ar.engine import make_vllm_config
    from cantata.stages.ar.needs import prepare_needs
    from cantata.stages.ar.served_model import register_talker
    from tiny_talker.driving import TALKER

    deployment = ArDeployment(device="cuda", max_model_len=256, cuda_graphs=graphs)
    talker = resolve(TALKER.factory)
    name, asked = register_talker(TALKER.factory, talker), list_graph_sizes(deployment, talker)
    with pretended_card():
        made = make_vllm_config(name, checkpoint, deployment, asked)
        needs = prepare_needs(TALKER, checkpoint, deployment)()
        config, modes = made.compilation_config, dict[str, str]()
        for support in (AttentionCGSupport.ALWAYS, AttentionCGSupport.UNIFORM_BATCH):
            resolved = copy.deepcopy(config).resolve_cudagraph_mode_and_sizes(
                support, "attention", use_v2_model_runner=True, piecewise_capture_available=False
            )
            modes[support.name] = resolved.name
    return {
        "graph_bytes": needs["graphs"],
        "asked": list(asked),
        "sizes": config.cudagraph_capture_sizes,
        "compiled": config.mode.name,
        "modes": modes,
        "eager": made.model_config.enforce_eager,
        "warms_up": made.kernel_config.enable_jit_warmup,
        "compares_products": made.kernel_config.enable_flashinfer_autotune,
    }


def describe_first_runner(checkpoint: Path) -> str:
    """Return the error of a stage for which vLLM chose its first model runner."""
    from cantata.contract.data.errors import ConfigError

    with patch.dict(os.environ, VLLM_USE_V2_MODEL_RUNNER="0"):
        try:
            describe(checkpoint, graphs=True)
        except ConfigError as refused:
            return str(refused)
    return ""


if __name__ == "__main__":
    interpret_triton()
    from cantata.stages.ar.environment import prepare_environment

    prepare_environment()
    folder = Path(sys.argv[1])
    made: dict[str, Any] = {
        str(graphs): describe(folder, graphs=graphs) for graphs in (True, False)
    }
    print(json.dumps(made | {"refused": describe_first_runner(folder)}))
