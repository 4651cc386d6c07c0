"""Faults of requests: text, time, choice, ends."""

from __future__ import annotations

from .mutant import Mutant

PUMP = "backend/cantata/pipeline/speech_pump.py"
PIPELINE = "backend/tests/integration/test_pipeline.py"
WORD_TIMES = ("e2e/test_word_times.py",)

SERVICE = (
    Mutant(
        "pieces-swapped",
        "the pieces of a text in another order",
        PUMP,
        "        for part in parts:\n            if isinstance(part, TextPause):\n",
        "        for part in [*parts[:1], *reversed(parts[1:])]:\n"
        "            if isinstance(part, TextPause):\n",
        WORD_TIMES,
    ),
    Mutant(
        "pause-halved",
        "pauses half as long as asked",
        PUMP,
        "round(pause.duration_s * self._sample_rate)",
        "round(pause.duration_s * self._sample_rate / 2)",
        WORD_TIMES,
    ),
    Mutant(
        "words-late",
        "word times 300 ms late",
        "models/cantata_models/solo/talker_front.py",
        "WordTiming(index, start * SLOT_S + lag_s, end * SLOT_S + lag_s)",
        "WordTiming(index, start * SLOT_S + lag_s + 0.3, end * SLOT_S + lag_s + 0.3)",
        WORD_TIMES,
    ),
    Mutant(
        "words-drift",
        "word times that run 10% slow",
        "models/cantata_models/solo/talker_front.py",
        "WordTiming(index, start * SLOT_S + lag_s, end * SLOT_S + lag_s)",
        "WordTiming(index, start * SLOT_S * 1.1 + lag_s, end * SLOT_S * 1.1 + lag_s)",
        WORD_TIMES,
    ),
    Mutant(
        "wrong-voice",
        "a neighbouring voice speaks",
        "models/cantata_models/solo/talker_front.py",
        "return self.text_track.stock_speakers[speaker]",
        "return self.text_track.stock_speakers[speaker - 1]",
        ("e2e/test_judges.py::test_sound_speech_has_no_fault",),
    ),
    Mutant(
        "batch-voice",
        "all texts of a batch in the first one's voice",
        "backend/cantata/api/speech/batch_response.py",
        "validate_request(self._context, model, item)",
        'validate_request(self._context, model, item.model_copy(update={"voice": '
        "self._items[0].voice}))",
        ("backend/tests/unit/api/test_speech_batch.py",),
    ),
    Mutant(
        "seed-ignored",
        "every seed gives the same samples",
        "backend/cantata/stages/ar/prompts.py",
        "seed=options.seed,",
        "seed=0,",
        ("models/cantata_models/solo/tests/test_talker_stage.py",),
    ),
    Mutant(
        "key-not-checked",
        "any API key is accepted",
        "backend/cantata/api/access/security.py",
        "if (is_trusted(scope) and not lost) or self._is_open(scope):",
        "if labels or True:",
        ("backend/tests/unit/api/test_security.py",),
    ),
    Mutant(
        "secret-opens-all",
        "a browser's client secret stands for the whole key",
        "backend/cantata/api/access/security.py",
        "secrets[0] if secrets and opens_session else None",
        "secrets[0] if secrets else None",
        ("backend/tests/unit/api/realtime/test_client_secrets.py",),
    ),
    Mutant(
        "resumed-by-anyone",
        "a session's token is good for every key",
        "backend/cantata/api/realtime/resuming/resumable_sessions.py",
        "if session is not None and session.owner == owner:",
        "if session is not None:",
        ("backend/tests/unit/api/realtime/test_resuming_keys.py",),
    ),
    Mutant(
        "resumed-with-a-gap",
        "who comes back to a session misses an event",
        "backend/cantata/api/realtime/resuming/sent_events.py",
        "self._next = self.find(event_id) + 1",
        "self._next = self.find(event_id) + 2",
        ("backend/tests/unit/api/realtime/test_resuming.py",),
    ),
    Mutant(
        "abort-lost",
        "aborts never reach the stages",
        "backend/cantata/pipeline/aborts.py",
        "        await stage.send(Abort((opened.request_id,)))\n",
        "        pass\n",
        (f"{PIPELINE}::test_cancellation_has_freed_everything_when_it_is_awaited",),
    ),
    Mutant(
        "credit-lost",
        "a listener's credit never reaches the decoder",
        "backend/cantata/pipeline/output_stream.py",
        "        await self._stages[stage].send(Credit(request_id, samples))\n",
        "",
        (f"{PIPELINE}::test_a_client_that_stops_reading_delays_no_other_stream",),
    ),
    Mutant(
        "first-packet-late",
        "the first packet 500 ms late",
        "backend/cantata/pipeline/output_stream.py",
        "        self._next_index += 1\n",
        "        if self._next_index == 0:\n            await asyncio.sleep(0.5)\n"
        "        self._next_index += 1\n",
        ("e2e/test_first_packet.py::test_the_fastest_first_packet_is_near_the_bare_models",),
    ),
    Mutant(
        "never-ends",
        "one request of 200 never ends",
        PUMP,
        "            began_s = self._samples / self._sample_rate\n",
        '            SpeechPump.spoken = getattr(SpeechPump, "spoken", 0) + 1\n'
        "            if SpeechPump.spoken % 200 == 199:\n"
        "                await asyncio.Event().wait()\n"
        "            began_s = self._samples / self._sample_rate\n",
        ("e2e/test_crowd.py::test_in_a_crowd_every_request_ends_with_its_own_words",),
    ),
)
