"""The Pocket TTS plug-in for the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.pocket_tts.pipeline import PIPELINE

if TYPE_CHECKING:
    from cantata_models.pocket_tts.request_builder import PocketRequestBuilder


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has a configuration of this model's, which no JSON file names."""
    from cantata_models.pocket_tts.config import find_config

    return find_config(folder) is not None


def load_builder(checkpoint: Path) -> PocketRequestBuilder:
    """The request builder of a folder. Every command imports this module, so SentencePiece
    is imported only here."""
    from cantata_models.pocket_tts.request_builder import load_builder

    return load_builder(checkpoint)


def check_numerics() -> NumericsReport:
    """Check the talker's and the codec's float32 products."""
    # Only the doctor calls this. The import is local so that a server need not load torch here.
    from cantata_models.pocket_tts import numerics

    return numerics.check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint."""
    # Only tests call this. The import is local so that a server need not load torch here.
    from cantata_models.pocket_tts.random_checkpoint.configs import TINY
    from cantata_models.pocket_tts.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY, seed=3)


PLUGIN = ModelPlugin(
    name="pocket_tts",
    model_types=(),
    is_checkpoint=is_checkpoint,
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
