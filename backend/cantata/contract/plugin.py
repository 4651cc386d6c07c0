"""What a model's folder gives: `PLUGIN = ModelPlugin(...)`, found through entry points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cantata.contract.capabilities import Capabilities
from cantata.contract.pipeline import PipelineSpec
from cantata.contract.request import PipelineRequest, SpeechRequest, Voice


class RequestBuilder(Protocol):
    """Turns validated requests into stage inputs, in the api process.

    Light to load (no weights beyond what text needs) and safe to call from a worker thread.
    """

    @property
    def voices(self) -> tuple[Voice, ...]:
        """What the checkpoint offers, the default voice first."""
        ...

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Stage inputs for a text, one pipeline request for each piece that is spoken in one go.

        Args:
            request_id: the pieces' ids are `{request_id}-{index}`.
            request: its `voice` is one of `voices`' own ids.

        Returns:
            At least one piece, in the order of speaking.

        Raises:
            InvalidRequest: nothing in the text can be spoken, or an option cannot be served.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelPlugin:
    """One model, whole in its own folder."""

    name: str
    """The id by which clients ask for it, unless the deployment serves it under another."""
    model_types: tuple[str, ...]
    """Values of `model_type` in a checkpoint's config.json that this plug-in loads."""
    pipeline: PipelineSpec
    deployment: Path
    """The YAML file that users copy and edit."""
    load_builder: Callable[[Path], RequestBuilder]
    """Checkpoint folder -> request builder."""
    warm_up_text: str = "Hello."
    """Spoken to nobody before the model is ready, so that the first listener waits for no lazy
    loading."""
    embedded_checkpoint: Path | None = None
    """Weights that ship with the plug-in, used when no checkpoint is named."""
    capabilities: Capabilities = field(default_factory=Capabilities)
