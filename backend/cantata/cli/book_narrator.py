"""Speaks a book's sentences with a model of this program."""

from __future__ import annotations

from cantata.cli.book import BookArguments
from cantata.contract.data.request import LexiconEntry, SpeechRequest
from cantata.contract.service import SpeechModel
from cantata.jobs.job import Job, JobFile, JobSentence, SpokenSentence
from cantata.jobs.results import ResultOptions, write_results
from cantata.jobs.speaking import gather_sound, speak_or_skip
from cantata.jobs.store import JobStore
from cantata.media.provenance import make_sound_tags
from cantata.text.lexicon import select_entries


class BookNarrator:
    """Implements `jobs.speaking.Narrator`. `options`: of the command."""

    def __init__(
        self,
        options: BookArguments,
        store: JobStore,
        model: SpeechModel,
        entries: tuple[LexiconEntry, ...],
    ) -> None:
        self._options, self._store, self._model = options, store, model
        self._entries = entries

    async def speak(self, job: Job, sentence: JobSentence) -> SpokenSentence:
        return await speak_or_skip(self._speak, sentence, job.shape.channels)

    async def write(self, job: Job) -> tuple[JobFile, ...]:
        tags = make_sound_tags(self._model.name)
        options = ResultOptions(self._options.form, None, self._options.captions, tags)
        return await write_results(self._store, job, options)

    async def _speak(self, sentence: JobSentence) -> SpokenSentence:
        options = self._options
        voice = (options.speakers or {}).get(sentence.speaker, options.voice)
        request = SpeechRequest(
            sentence.text,
            self._model.get_voice(voice).id,
            speed=options.speed,
            seed=options.seed,
            continued=not sentence.begins,
            lexicon=select_entries(sentence.text, self._entries),
            batch=True,
        )
        async with self._model.run(request) as utterance:
            return await gather_sound(utterance, self._model.channels)
