"""One model that listens, in this process: what `cantata transcribe` recognizes with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import cast

from cantata.config import RecognitionDeployment, load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.errors import CantataError, ConfigError
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import StageKind
from cantata.contract.model.recognizer import Sound, SpeechRecognizer, SpeechWindow
from cantata.contract.service import AdmissionReport
from cantata.contract.transcription_service import Recognition
from cantata.pipeline.whole_window import GrowingWindow
from cantata.utils.gpus import see_gpus
from cantata.utils.logs import make_work_id


class LocalTranscriptionModel:
    """Implements `contract.transcription_service.TranscriptionModel` for one caller.

    Args:
        located: the plug-in and its checkpoint; the pipeline is one recognition stage.

    Raises:
        ConfigError: it is not, or the checkpoint is not valid.
    """

    has_partials = True

    def __init__(self, located: LocatedModel) -> None:
        plugin = located.plugin
        load = plugin.load_transcription_builder
        if load is None or not is_possible(located):
            raise ConfigError(f"model {plugin.name!r} does not transcribe in one process")
        self.name = plugin.name
        self._located = located
        self._builder = load(located.checkpoint)
        self.languages = self._builder.languages
        self.translates = self._builder.translates
        self.has_timestamps = self._builder.has_timestamps
        self.max_window_s = self._builder.max_window_s
        self._recognizer: SpeechRecognizer | None = None
        self._thread = ThreadPoolExecutor(1, "recognize")

    @property
    def admission(self) -> AdmissionReport:
        """One place."""
        return AdmissionReport(1, 0, 0, 0)

    def check_room(self) -> None:
        """There is always room for the one caller."""

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    @asynccontextmanager
    async def run(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        """Begin a window; the first one loads the model."""
        yield GrowingWindow(self, request)

    async def transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        """Recognize a whole window in the thread. Raises InvalidRequest: an option cannot be
        served."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transcribe, request, sound)

    def _transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        if self._recognizer is None:
            self._recognizer = self._load()
        built = self._builder.build(make_work_id(), request, None)
        (inputs,) = built.inputs.values()
        [update] = self._recognizer.recognize([SpeechWindow(inputs, sound)])
        if isinstance(update, CantataError):
            raise update
        return update.transcript

    def _load(self) -> SpeechRecognizer:
        located = self._located
        (spec,) = located.pipeline.stages
        deployment = load_deployment(located.plugin.deployment, located.pipeline)
        stage = cast(RecognitionDeployment, deployment.stages[spec.name])
        if stage.gpu is not None:
            see_gpus(stage.gpu)
        recognizer: SpeechRecognizer = resolve(spec.factory)(
            located.checkpoint, stage.on_its_gpu().device, stage.dtype
        )
        return recognizer


def is_possible(located: LocatedModel) -> bool:
    """Whether the model's pipeline is one recognition stage."""
    return [spec.kind for spec in located.pipeline.stages] == [StageKind.RECOGNITION]
