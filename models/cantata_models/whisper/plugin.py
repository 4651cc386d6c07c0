"""Whisper's plug-in for the server."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.contract.model.plugin import ModelPlugin
from cantata_models.whisper.pipeline import PIPELINE

if TYPE_CHECKING:
    from cantata_models.whisper.request_builder import WhisperRequestBuilder

_FOLDER = Path(__file__).parent


def load_builder(checkpoint: Path) -> WhisperRequestBuilder:
    """The request builder of a checkpoint. Every command imports this module, so the tokenizers are
    imported only here."""
    from cantata_models.whisper.request_builder import WhisperRequestBuilder

    return WhisperRequestBuilder(checkpoint)


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny multilingual checkpoint in CTranslate2's form."""
    from cantata_models.whisper.random_checkpoint import MANY, write_converted_checkpoint

    write_converted_checkpoint(folder, MANY)


PLUGIN = ModelPlugin(
    name="whisper",
    model_types=("whisper",),
    # CTranslate2 writes no type.
    config_keys=frozenset({"alignment_heads", "suppress_ids"}),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_transcription_builder=load_builder,
    # Its runtime is an extra.
    embedded_checkpoint=_FOLDER / "weights" if find_spec("ctranslate2") else None,
    write_random_checkpoint=write_random_checkpoint,
)
