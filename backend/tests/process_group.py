"""torch's process group, of which a process has one."""

from __future__ import annotations

import sys

from torch import distributed


def leave_process_group() -> None:
    """Leave the group that an engine of vLLM has joined in this process, for an earlier test: it
    stays in it when it ends."""
    if not distributed.is_initialized():
        return
    if "vllm.distributed.parallel_state" in sys.modules:
        from vllm.distributed.parallel_state import (
            destroy_distributed_environment,
            destroy_model_parallel,
        )

        destroy_model_parallel()
        destroy_distributed_environment()
    if distributed.is_initialized():
        distributed.destroy_process_group()
