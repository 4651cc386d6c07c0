"""Faults of samples, on their way from the decoder to the client."""

from __future__ import annotations

from .mutant import Mutant

STAGE = "backend/cantata/stages/codec/stage.py"
EMITTED = "        samples = decoded.samples[context_frames * self._decoder.samples_per_frame :]\n"
ENDING = "        final = stream.complete and not stream.frames\n"
JUDGED = ("e2e/test_judges.py::test_sound_speech_has_no_fault",)
USUAL = ("e2e/test_voice.py::test_each_voice_keeps_its_pace_and_ends_in_silence",)
CODEC = ("backend/tests/unit/test_codec_stage.py",)


def _emitting(name: str, fault: str, line: str, tests: tuple[str, ...] = JUDGED) -> Mutant:
    """A change of each chunk of samples as the decoder's stage sends it."""
    return Mutant(name, fault, STAGE, EMITTED, f"{EMITTED}        {line}\n", tests)


def _at_times(expression: str) -> str:
    """In every ninth chunk; speech has begun by then."""
    return f"samples = {expression} if stream.sent_chunks % 9 == 6 else samples"


SOUND = (
    _emitting("offset", "offset of 0.05", "samples = samples + np.float32(0.05)"),
    _emitting(
        "hole-each-second",
        "30 ms of silence each second",
        "at = stream.sent_samples + np.arange(len(samples))[:, None]; "
        "samples = np.where(at % 24_000 // 720 == 20, np.float32(0), samples)",
    ),
    _emitting("chunk-muted", "a chunk at a third of its level", _at_times("samples / 3")),
    _emitting("chunk-dropped", "a chunk dropped", _at_times("samples[:0]")),
    _emitting(
        "chunk-repeated", "a chunk sent twice", _at_times("np.concatenate([samples, samples])")
    ),
    _emitting(
        "chunk-swapped",
        "the halves of a chunk swapped",
        _at_times("np.roll(samples, len(samples) // 2, axis=0)"),
    ),
    _emitting(
        "chunk-shifted",
        "a chunk 2.5 ms late",
        _at_times("np.concatenate([np.zeros((60, 1), np.float32), samples[:-60]])"),
    ),
    _emitting("chunk-inverted", "a chunk with its sign turned", _at_times("-samples")),
    _emitting("clip", "clipped at a quarter", "samples = np.clip(samples, -0.25, 0.25)"),
    _emitting("quiet", "everything at half its level", "samples = samples * np.float32(0.5)"),
    _emitting(
        "noise",
        "noise at -50 dB",
        "samples = samples + np.sin(np.arange(len(samples))**2)[:, None]"
        ".astype(np.float32) * np.float32(0.004)",
    ),
    _emitting(
        "rate",
        "8% too fast, as at a wrong rate",
        "samples = np.interp(np.arange(0, len(samples), 1.08), np.arange(len(samples)),"
        " samples[:, 0])[:, None].astype(np.float32)",
        USUAL,
    ),
    Mutant(
        "last-frame-lost",
        "the last 80 ms cut",
        STAGE,
        ENDING,
        f"{ENDING}        samples = samples[:-1920] if final else samples\n",
        USUAL,
    ),
    Mutant(
        "wrap",
        "loud samples wrap round",
        "backend/cantata/audio/pcm.py",
        'scaled.astype("<i2")',
        '(2.5 * scaled).astype(np.int64).astype("<i2")',
        JUDGED,
    ),
    Mutant(
        "header-rate",
        "WAV's header says 22,050 Hz",
        "backend/cantata/audio/pcm.py",
        "        sample_rate,\n        sample_rate * block_bytes,\n",
        "        22_050,\n        22_050 * block_bytes,\n",
        ("backend/tests/unit/test_encoding.py", "backend/tests/unit/api/test_pieces.py"),
    ),
    Mutant(
        "encoder-tail",
        "compressed files lose what the encoder holds back",
        "backend/cantata/audio/codecs.py",
        "        self._container.mux(self._stream.encode(None))\n",
        "",
        ("backend/tests/unit/test_encoding.py",),
    ),
    Mutant(
        "state-not-reset",
        "a slot keeps the state of its last request",
        STAGE,
        "        self._decoder.reset(self._state, upload(torch.tensor([slot]), self._device))\n",
        "",
        CODEC,
    ),
    Mutant(
        "crosstalk",
        "requests of a batch get each other's samples",
        STAGE,
        "in zip(rows, decoded, strict=True)",
        "in zip(rows, [decoded[-1], *decoded[:-1]], strict=True)",
        ("e2e/test_crowd.py::test_in_a_crowd_every_request_ends_with_its_own_words",),
    ),
)
