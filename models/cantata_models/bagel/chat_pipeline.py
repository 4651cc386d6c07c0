"""The pipeline that answers: pictures are seen, the language model writes."""

from __future__ import annotations

from cantata.contract.data.chunks import Codes, Rows
from cantata.contract.model.pipeline import (
    CLIENT,
    CODES,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)
from cantata_models.bagel.pipeline import STAGES
from cantata_models.bagel.ports import ANSWER, SEE, SEEN

CHAT_PIPELINE = PipelineSpec(
    stages=(
        StageSpec(SEE, StageKind.FEED_FORWARD, f"{STAGES}.vision:load_eyes", outputs={SEEN: Rows}),
        StageSpec(
            ANSWER,
            StageKind.DIFFUSION,
            f"{STAGES}.answer:load_answerer",
            outputs={CODES: Codes},
        ),
    ),
    edges=(EdgeSpec(f"{SEE}.{SEEN}", ANSWER), EdgeSpec(f"{ANSWER}.{CODES}", CLIENT)),
)
