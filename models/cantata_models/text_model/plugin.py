"""The plug-ins for the server: any text model, and SmolLM2. One stage: a thinker whose tokens are
the answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.text_model import smollm2
from cantata_models.text_model.config import is_text_model
from cantata_models.text_model.gguf.folder import SUFFIX, open_gguf
from cantata_models.text_model.options import read_options

THINKER = "thinker"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            THINKER, StageKind.AR, "cantata_models.text_model.thinker_stage:TextModelThinker"
        ),
    ),
    edges=(EdgeSpec(f"{THINKER}.codes", CLIENT),),
)


LOAD_CHAT_BUILDER = Factory("cantata_models.text_model.chat_builder:TextModelBuilder")
_FOLDER = Path(__file__).parent


def configure(options: Mapping[str, Any]) -> ModelPlugin:
    """Return the plug-in with a deployment's options."""
    return _with_options(PLUGIN, options)


def configure_smollm2(options: Mapping[str, Any]) -> ModelPlugin:
    """Return SmolLM2's plug-in with a deployment's options."""
    return _with_options(SMOLLM2, options)


def _with_options(plugin: ModelPlugin, options: Mapping[str, Any]) -> ModelPlugin:
    load = partial(LOAD_CHAT_BUILDER, options=read_options(options))
    return replace(plugin, load_chat_builder=load)


PLUGIN = ModelPlugin(
    name="text-model",
    model_types=(),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_chat_builder=LOAD_CHAT_BUILDER,
    takes_unclaimed=is_text_model,
    file_suffix=SUFFIX,
    open_file=open_gguf,
    configure=configure,
    write_random_checkpoint=Factory("cantata_models.text_model.random_checkpoint:write_tiny"),
)
SMOLLM2 = ModelPlugin(
    name=smollm2.NAME,
    model_types=(),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy_smollm2.yaml",
    load_chat_builder=LOAD_CHAT_BUILDER,
    find_checkpoint=smollm2.find_file,
    install=smollm2.INSTALL,
    open_file=open_gguf,
    configure=configure_smollm2,
)
