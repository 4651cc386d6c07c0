"""The plug-in for the server."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.text_model.config import is_text_model
from cantata_models.text_model.options import read_options
from cantata_models.text_model.pipeline import PIPELINE

LOAD_CHAT_BUILDER = Factory("cantata_models.text_model.chat_builder:TextModelBuilder")


def configure(options: Mapping[str, Any]) -> ModelPlugin:
    """Return the plug-in with a deployment's options."""
    load = partial(LOAD_CHAT_BUILDER, options=read_options(options))
    return replace(PLUGIN, load_chat_builder=load)


PLUGIN = ModelPlugin(
    name="text-model",
    model_types=(),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=LOAD_CHAT_BUILDER,
    takes_unclaimed=is_text_model,
    configure=configure,
    write_random_checkpoint=Factory("cantata_models.text_model.random_checkpoint:write_tiny"),
)
