"""The plug-in for the server."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cantata.contract.model.conversation import ParsedChatBuilder
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.text_model.config import is_text_model
from cantata_models.text_model.options import TextModelOptions, read_options
from cantata_models.text_model.pipeline import PIPELINE

DEFAULTS = TextModelOptions()

# The imports below are local so that listing the plug-in loads neither torch nor transformers.


def load_chat_builder(checkpoint: Path, options: TextModelOptions = DEFAULTS) -> ParsedChatBuilder:
    """Return the builder of a checkpoint folder."""
    from cantata_models.text_model.chat_builder import TextModelBuilder

    return TextModelBuilder(checkpoint, options)


def configure(options: Mapping[str, Any]) -> ModelPlugin:
    """Return the plug-in with a deployment's options."""
    return replace(
        PLUGIN, load_chat_builder=partial(load_chat_builder, options=read_options(options))
    )


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny Llama."""
    from cantata_models.text_model.random_checkpoint import write_checkpoint

    write_checkpoint(folder, "llama")


PLUGIN = ModelPlugin(
    name="text-model",
    model_types=(),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=load_chat_builder,
    takes_unclaimed=is_text_model,
    configure=configure,
    write_random_checkpoint=write_random_checkpoint,
)
