"""What a model's folder provides: `PLUGIN = ModelPlugin(...)`, found through entry points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import (
    PipelineRequest,
    ReferenceAudio,
    SpeechRequest,
    StageInput,
    Voice,
)
from cantata.contract.model.conversation import AnyChatBuilder
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.picture import ImageBuilder
from cantata.contract.model.pipeline import PipelineSpec
from cantata.contract.model.recognizer import TranscriptionBuilder


class RequestBuilder(Protocol):
    """Turns validated requests into stage inputs, in the api process.

    Light to load (no weights beyond what text needs) and safe to call from a worker thread.
    """

    @property
    def voices(self) -> tuple[Voice, ...]:
        """What the checkpoint offers, the default voice first."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the checkpoint can do beyond speaking a text in one of its voices."""
        ...

    @property
    def warm_up(self) -> SpeechRequest:
        """Spoken and discarded before the model is ready, so that lazy loading does not delay the
        first request."""
        ...

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Stage inputs for a text, one pipeline request for each piece that is spoken in one go.

        Args:
            request_id: the pieces' ids are `{request_id}-{index}`.
            request: its `voice` is one of `voices`' own ids.

        Returns:
            The pieces in the order of speaking; empty if nothing in the text has a sound, which is
            then a short silence.

        Raises:
            InvalidRequest: nothing in the text can be read, or an option cannot be served.
        """
        ...


class PhonemizingBuilder(RequestBuilder, Protocol):
    """A builder that says how it reads a text."""

    def phonemize(self, text: str, language: str) -> str:
        """The phones of a text, as `[[...]]` takes them.

        Args:
            text: without markup.
            language: a BCP 47 tag, or the model's own name of it.

        Raises:
            InvalidRequest: a language or a text that is not read here.
        """
        ...


@runtime_checkable
class SpeakerComparer(Protocol):
    """A builder that tells speakers apart."""

    def may_be_same_speaker(self, first: ReferenceAudio, second: ReferenceAudio) -> bool:
        """Whether two recordings may be of one speaker; takes milliseconds."""
        ...


class TextFeed(Protocol):
    """One request's text while it arrives. Every call is quick and made by one caller at a time."""

    @property
    def stage(self) -> str:
        """The stage that takes what `more` gives."""
        ...

    def push(self, text: str) -> None: ...

    def close(self) -> None:
        """End the text: nothing follows."""
        ...

    def start(self) -> PipelineRequest | None:
        """The request, once enough has arrived to begin; None before. Raises InvalidRequest: the
        text is complete and nothing in it can be spoken."""
        ...

    def more(self) -> StageInput | None:
        """New input for the stage since `start` or the last call; None: nothing usable yet.
        After `close` there is always something."""
        ...


class OpenRequestBuilder(RequestBuilder, Protocol):
    """A builder whose model can begin a text before its end has arrived."""

    def open(self, request_id: str, request: SpeechRequest) -> TextFeed:
        """Begin a request; its text so far may be empty. Raises InvalidRequest: an option cannot be
        served."""
        ...


@dataclass(frozen=True, slots=True)
class ModelPlugin:
    """One model, whole in its own folder."""

    name: str
    """The id by which clients ask for it, unless the deployment serves it under another."""
    model_types: tuple[str, ...]
    """Values of `model_type` in a checkpoint's config.json that this plug-in loads, of
    `architecture` if that has none, or of `_class_name` in its model_index.json."""
    pipeline: PipelineSpec
    deployment: Path
    """The YAML file that users copy and edit."""
    load_builder: Callable[[Path], RequestBuilder] | None = None
    """Checkpoint folder -> request builder; None: it does not speak given texts."""
    load_chat_builder: Callable[[Path], AnyChatBuilder] | None = None
    """The same for conversations; None: it has none."""
    load_image_builder: Callable[[Path], ImageBuilder] | None = None
    """The same for pictures; None: it draws none. A model that has both builders answers and draws
    over one pipeline, with one stage that denoises."""
    load_transcription_builder: Callable[[Path], TranscriptionBuilder] | None = None
    """The same for speech that is to be written down; None: it does not listen."""
    config_keys: frozenset[str] = frozenset()
    """Keys of config.json that together tell this model's checkpoints from others', if they are
    published without a type; empty: they have one."""
    is_checkpoint: Callable[[Path], bool] | None = None
    """Whether a folder without a config.json is a checkpoint of this model. None: its checkpoints
    have one."""
    takes_unclaimed: Callable[[Path], bool] | None = None
    """Whether this model takes a folder that no other plug-in knows. None: never."""
    configure: Callable[[Mapping[str, Any]], ModelPlugin] | None = None
    """The plug-in with the options of a deployment; raises ConfigError for wrong ones. None: it has
    none."""
    unused_stages: Callable[[Path], Collection[str]] | None = None
    """Checkpoint folder -> stages of the pipeline that it does not use. None: it uses all."""
    embedded_checkpoint: Path | None = None
    """Weights that ship with the plug-in, used when no checkpoint is named."""
    find_checkpoint: Callable[[], Path | None] | None = None
    """Finds weights that a third-party package installed: a folder, or a file for `open_file`. The
    model is served only if it is named. None: no package has them."""
    install: str | None = None
    """The command that installs these weights; None: the extra of the plug-in's name does, if there
    is one."""
    file_suffix: str | None = None
    """Suffix of files that hold a whole checkpoint each; None: only folders do."""
    open_file: Callable[[Path], Path] | None = None
    """Converts such a file to the folder that is served in its place, which takes long only the
    first time; raises ConfigError. None: there are no such files."""
    check_numerics: Callable[[], NumericsReport] | None = None
    """Measures, within seconds, whether the model's products give a request the same samples alone
    and in a batch on this machine's CPU, for `cantata doctor`. Imports what they need."""
    is_default: bool = False
    """Whether it is the default where no model is named. Exactly one installed plug-in is, whatever
    weights ship with others."""
    write_random_checkpoint: Callable[[Path], None] | None = None
    """Writes a small checkpoint of random weights into a folder, so that the conformance tests can
    run for a model without its weights."""

    def __post_init__(self) -> None:
        does = (
            self.load_builder is not None,
            self.load_chat_builder is not None or self.load_image_builder is not None,
            self.load_transcription_builder is not None,
        )
        if sum(does) != 1:
            raise ConfigError(
                f"plug-in {self.name!r} either speaks texts, or transcribes speech, or answers, "
                "draws or does both"
            )

    def speech_builder(self, checkpoint: Path) -> RequestBuilder:
        """The request builder of a checkpoint. Raises ConfigError: the model does not speak given
        texts."""
        if self.load_builder is None:
            raise ConfigError(f"model {self.name!r} does not speak given texts")
        return self.load_builder(checkpoint)
