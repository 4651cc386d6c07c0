"""Which steps of a backbone vLLM records as CUDA graphs."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.config import ArDeployment
from cantata.contract.model.talker import Talker

MAX_PROMPT_POSITIONS = 512
"""Of a step with prompts in it that is recorded, if the deployment has no more slots. A longer one
computes for so long that launching its kernels one by one costs little beside it, and a graph of it
would hold more memory for attention's parts."""
_FIRST_SIZES = (1, 2, 4, 8)


def list_graph_sizes(deployment: ArDeployment, talker: type[Talker]) -> Sequence[int]:
    """Positions of the steps to record: vLLM pads each step to the next size, and calls the layers
    one by one where there is none.

    Args:
        deployment: of the stage.
        talker: its model.

    Returns:
        In order: powers of two, from 8 on those half-way between them, and as many as the
        deployment has slots, which is a step in which every request speaks. None at all: the
        backbone runs without graphs, as on a CPU.
    """
    if not (deployment.on_gpu and deployment.cuda_graphs and talker.records_forward):
        return ()
    most = deployment.max_num_batched_tokens
    largest = min(max(deployment.slots, MAX_PROMPT_POSITIONS), most)
    sizes, size = {*_FIRST_SIZES, min(deployment.slots, most), largest}, _FIRST_SIZES[-1]
    while size < largest:
        sizes |= {size, size + size // 2}
        size *= 2
    return sorted(size for size in sizes if size <= largest)
