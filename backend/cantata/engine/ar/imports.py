"""What an AR stage on a CPU imports, for the fork server.

Importing it sets what vLLM reads from the environment, and imports nothing that starts threads or
runs tensors.
"""

from __future__ import annotations

from cantata.engine.ar.environment import (
    as_if_not_installed,
    imports_exempt_from_collection,
    prepare_environment,
)

prepare_environment()
with imports_exempt_from_collection(), as_if_not_installed("scipy"):
    # What vLLM would import when an engine starts.
    import vllm.model_executor.models.registry
    import vllm.v1.attention.backends.cpu_attn
    import vllm.v1.engine.core
    import vllm.v1.executor.uniproc_executor  # noqa: F401

    import cantata.engine.ar.engine
    import cantata.engine.ar.runner_v1
    import cantata.engine.ar.served_model
    import cantata.engine.ar.stage  # noqa: F401
