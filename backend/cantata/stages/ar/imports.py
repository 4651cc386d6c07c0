"""What an AR stage on a CPU imports, for the fork server.

Importing it sets what vLLM reads from the environment, and imports nothing that starts threads or
runs tensors.
"""

from __future__ import annotations

import os

from cantata.stages.ar.environment import (
    as_if_not_installed,
    imports_exempt_from_collection,
    prepare_environment,
)

OPTIONAL = (
    *("scipy", "av", "cv2"),  # resampling, losses of training, media in prompts
    "opentelemetry",  # traces
    *("triton", "torch._inductor.lowering"),  # compiled kernels, none of them for a CPU
)
"""What vLLM and transformers do without if it is missing, and no stage needs from them."""

prepare_environment()
# PyTorch's own switch: no stage on a CPU compiles, and the compiler takes as long to import as half
# of torch.
os.environ["TORCHDYNAMO_DISABLE"] = "1"
with imports_exempt_from_collection(), as_if_not_installed(*OPTIONAL):
    # What vLLM would import when an engine starts.
    import vllm.model_executor.models.registry
    import vllm.v1.attention.backends.cpu_attn
    import vllm.v1.engine.core
    import vllm.v1.executor.uniproc_executor  # noqa: F401

    import cantata.stages.ar.engine
    import cantata.stages.ar.runner_v1
    import cantata.stages.ar.served_model
    import cantata.stages.ar.stage  # noqa: F401
