"""The topology: a thinker whose tokens are the answer."""

from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

THINKER = "thinker"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            THINKER, StageKind.AR, "cantata_models.text_model.thinker_stage:TextModelThinker"
        ),
    ),
    edges=(EdgeSpec(f"{THINKER}.codes", CLIENT),),
)
