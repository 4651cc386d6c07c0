"""Measures what a stage will hold on its device, in a process of its own.

WHY a process: what is built without memory leaves tables behind that other models would use. It is
forked from the stage's, which has imported everything and has not opened CUDA.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from cantata.config import KINDS, StageDeployment
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageSpec

logger = logging.getLogger(__name__)

Measure = Callable[[], Mapping[str, int]]


def measure_stage(
    spec: StageSpec, checkpoint: Path, deployment: StageDeployment
) -> Mapping[str, int]:
    """Bytes by what takes them. Of a model that cannot be built without memory, none are known; a
    checkpoint that is not valid is reported when the stage loads it."""
    prepare: Callable[[StageSpec, Path, StageDeployment], Measure]
    prepare = resolve(KINDS[spec.kind].needs)
    measure = prepare(spec, checkpoint, deployment)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _answer(spec.name, measure, writer)
    os.close(writer)
    with open(reader, encoding="ascii") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    needs: dict[str, int] = json.loads(said) if said else {}
    return needs


def _answer(stage: str, measure: Measure, writer: int) -> NoReturn:
    """Write the answer, or nothing, and end this process."""
    try:
        with open(writer, "w", encoding="ascii") as answer:
            answer.write(json.dumps(dict(measure())))
    except BaseException as error:
        # A model need not be made for this.
        logger.warning("stage %r: its memory is not known before it loads: %r", stage, error)
        logging.shutdown()
        os._exit(1)
    os._exit(0)
