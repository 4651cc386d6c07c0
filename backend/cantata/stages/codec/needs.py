"""What a codec stage will hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from cantata.config import CodecDeployment
from cantata.contract.model.pipeline import StageSpec
from cantata.stages.codec.decoding import count_graphs, count_spare_slots
from cantata.stages.codec.stage import load_decoder
from cantata.stages.common.needs import (
    GRAPH_BYTES,
    GRAPHS,
    META,
    STATE,
    WEIGHTS,
    count_made,
)


def prepare_needs(
    spec: StageSpec, checkpoint: Path, deployment: CodecDeployment
) -> Callable[[], Mapping[str, int]]:
    """What measures the decoder's weights, every slot's state, and the graphs of its steps."""
    return partial(_measure, spec, checkpoint, deployment)


def _measure(spec: StageSpec, checkpoint: Path, deployment: CodecDeployment) -> Mapping[str, int]:
    decoder, weights = count_made(lambda: load_decoder(spec, checkpoint, META))
    slots = deployment.slots + count_spare_slots(decoder, deployment)
    _, states = count_made(lambda: decoder.init_state(slots))
    graphs = count_graphs(decoder, deployment)
    return {WEIGHTS: weights, STATE: states, GRAPHS: GRAPH_BYTES * graphs}
