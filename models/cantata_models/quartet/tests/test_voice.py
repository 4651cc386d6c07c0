"""The stage: sound part by part, word times, speeds, voices, bad folders."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cantata.contract.data.errors import ConfigError, InvalidRequest, RequestFailed
from cantata.contract.data.request import (
    InflectedSpan,
    Inflection,
    ReferenceAudio,
    SpeechRequest,
    TextSpan,
)
from cantata.pipeline.plan import plan_services
from cantata.pipeline.service import create_service
from cantata.text.ssml import EMPHASES
from cantata_bench.asr import transcribe, word_error_rate
from cantata_layers.harmonic_vocoder import HOP, stream_noise, synthesize
from cantata_layers.misaki.speech import EnglishRequestBuilder, SentenceInput
from cantata_layers.speaker_features import MELS, speaker_vector
from cantata_models.quartet.config import CONFIG_FILE
from cantata_models.quartet.plugin import PLUGIN
from cantata_models.quartet.request_builder import load_builder
from cantata_models.quartet.spectrum_stream import REACH, SpectrumStream
from cantata_models.quartet.voice import (
    BLOCKS,
    WEIGHTS_FILE,
    QuartetVoices,
    load_voices,
    plan_sentence,
)
from e2e.judges import waveform
from e2e.judges.speech import align

Floats = np.ndarray[tuple[int], np.dtype[np.float32]]
Floats2 = np.ndarray[tuple[int, int], np.dtype[np.float64]]

CPU = torch.device("cpu")
VOICES = ("clara", "ben", "ruby", "ewan")
MEN = ("ben", "ewan")
MIN_SEMITONES = 2.0
TEXT = "The children walked home along the river after school."


@pytest.fixture(scope="module")
def weights() -> Path:
    assert PLUGIN.embedded_checkpoint is not None
    return PLUGIN.embedded_checkpoint


@pytest.fixture(scope="module")
def builder(weights: Path) -> EnglishRequestBuilder:
    return load_builder(weights)


@pytest.fixture(scope="module")
def voices(weights: Path) -> QuartetVoices:
    return load_voices(weights, CPU)


def inputs_of(builder: EnglishRequestBuilder, request: SpeechRequest) -> SentenceInput:
    (piece,) = builder.build("r", request)
    found = piece.inputs["voice"]
    assert isinstance(found, SentenceInput)
    return found


def speak(
    voices: QuartetVoices, inputs: SentenceInput
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.concatenate([part.samples[:, 0] for part in voices.synthesize(inputs)])


@pytest.mark.parametrize("blocks", [(28, *BLOCKS), (1, 3, 30), (1000,)])
def test_spectra_part_by_part_are_those_of_the_whole_sentence(
    blocks: tuple[int, ...], builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    inputs = inputs_of(builder, SpeechRequest(TEXT, "ruby"))
    sentence = plan_sentence(voices.network, inputs.phones, voices.network.find_speaker(2), 1.0)
    given, frames = sentence.inputs, len(sentence.pitch)
    with torch.inference_mode():
        whole = voices.network.spectrum.predict(
            given.encoded, given.pitch, given.energy, given.speaker
        )
    stream, begin = sentence.predict_spectra(), 0
    for size in chain(blocks, repeat(blocks[-1])):
        end = min(begin + size, frames)
        part = stream.predict(begin, end)
        for made, expected in zip(
            (part.harmonic, part.rotation, part.noise, part.free, part.phase), whole, strict=True
        ):
            assert np.allclose(made.T, expected[0, begin:end], atol=1e-3)
        begin = end
        if end == frames:
            break


def test_parts_are_the_whole_sentence(
    builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    """What a part needs of its neighbours is all there: in one part the sound is the same."""
    inputs = inputs_of(builder, SpeechRequest(TEXT, "ruby"))
    sentence = plan_sentence(voices.network, inputs.phones, voices.network.find_speaker(2), 1.0)
    frames = len(sentence.pitch)
    assert frames > sum(BLOCKS[:2])

    def make(blocks: tuple[int, ...], stream: SpectrumStream) -> Floats:
        silent = stream_noise(0)
        quiet = lambda begin, end: silent(begin, end) * 0  # noqa: E731
        return np.concatenate(list(synthesize(stream, quiet, blocks)))

    whole = make((frames,), sentence.predict_spectra())
    parts = make(BLOCKS, sentence.predict_spectra())
    assert len(whole) == frames * HOP
    assert np.abs(whole - parts).max() < 1e-4 * np.abs(whole).max()
    forgets = make(BLOCKS, Forgetful(voices.network.spectrum, sentence.inputs, sentence.pitch))
    assert np.abs(whole - forgets).max() > 1e-3 * np.abs(whole).max()


class Forgetful(SpectrumStream):
    """One layer forgets what was before."""

    def _surround(self, layer: int, x: torch.Tensor) -> torch.Tensor:
        around = super()._surround(layer, x)
        if layer == 4:
            self._histories[layer] = torch.zeros_like(around[..., -2 * REACH :])
        return around


def test_a_seed_repeats_and_changes_only_the_noise(
    builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    first, again, other = (
        speak(voices, inputs_of(builder, SpeechRequest(TEXT, "ben", seed=seed)))
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert len(first) == pytest.approx(len(other), abs=HOP * 4)
    assert not np.array_equal(first[:4000], other[:4000])


@pytest.mark.parametrize("voice", ["clara", "ben", "ewan"])
def test_words_are_where_an_aligner_hears_them(
    voice: str, builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    inputs = inputs_of(builder, SpeechRequest(TEXT, voice, seed=1))
    first, *rest = voices.synthesize(inputs)
    assert not any(part.words for part in rest)
    samples = np.concatenate([part.samples[:, 0] for part in (first, *rest)])
    heard = align(TEXT, samples, voices.sample_rate)
    assert len(heard) == len(first.words)
    pairs = list(zip(heard, first.words, strict=True))
    off = [abs(a.start_s - b.start_s) for a, b in pairs] + [
        abs(a.end_s - b.end_s) for a, b in pairs
    ]
    assert np.median(off) < 0.04
    assert np.mean(np.array(off) < 0.08) >= 0.92


def test_voices_differ_in_pitch_and_accent(
    builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    medians = []
    for place, voice in enumerate(VOICES):
        phones = inputs_of(builder, SpeechRequest("The bath is hot.", voice)).phones
        speaker = voices.network.find_speaker(place)
        pitch = plan_sentence(voices.network, phones, speaker, 1.0).pitch
        medians.append(float(np.median(pitch[pitch > 40])))
    clara, ben, ruby, ewan = medians
    assert min(clara, ruby) > 1.15 * max(ben, ewan), medians
    american, british = (
        list(inputs_of(builder, SpeechRequest("The bath is hot.", voice)).phones)
        for voice in ("clara", "ruby")
    )
    assert american != british


@pytest.mark.parametrize("voice", VOICES)
def test_a_recording_is_followed(
    voice: str, builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    """The recording is of a stock voice, a man's raised by a sixth or a woman's lowered: by its
    pitch and its spectrum, the clone is nearer to it than that voice is."""
    said = speak(voices, inputs_of(builder, SpeechRequest(TEXT, voice, seed=1)))
    raised = round(voices.sample_rate * (7 / 6 if voice in MEN else 6 / 7))
    reference = ReferenceAudio(said[:, None], raised)
    request = SpeechRequest("The kettle is on, would you like some tea?", "clara", seed=1)
    stock = speak(voices, inputs_of(builder, replace(request, voice=voice)))
    clone = speak(voices, inputs_of(builder, replace(request, reference=reference)))
    rates = {"wanted": (said, raised), "stock": (stock, 24_000), "clone": (clone, 24_000)}
    wanted, usual, followed = (speaker_vector(*sound) for sound in rates.values())
    octaves = [abs(float(one[-2] - wanted[-2])) for one in (usual, followed)]
    assert octaves[1] < octaves[0]
    shapes = [float(np.abs(one[:MELS] - wanted[:MELS]).mean()) for one in (usual, followed)]
    assert shapes[1] < shapes[0]


def test_a_recording_has_no_level(builder: EnglishRequestBuilder, voices: QuartetVoices) -> None:
    said = speak(voices, inputs_of(builder, SpeechRequest(TEXT, "ruby", seed=1)))[:, None]
    heard = [
        inputs_of(builder, SpeechRequest("Hello.", "clara", reference=ReferenceAudio(one, 24_000)))
        for one in (said, said * np.float32(0.1))
    ]
    loud, quiet = (one.voice for one in heard)
    assert isinstance(loud, np.ndarray)
    assert np.allclose(loud, quiet, atol=0.05)


@pytest.mark.parametrize("voice", VOICES)
def test_the_melody_moves(
    voice: str, builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    """A voice that reads without one moves by 1.3 to 2 semitones, solo's for example."""
    texts = (
        TEXT,
        "Have you ever seen the harbour at night?",
        "No, wait! I can explain, I promise.",
    )
    moves = []
    for text in texts:
        for piece in builder.build("r", SpeechRequest(text, voice)):
            inputs = piece.inputs["voice"]
            assert isinstance(inputs, SentenceInput)
            speaker = voices.network.find_speaker(VOICES.index(voice))
            pitch = plan_sentence(voices.network, inputs.phones, speaker, 1.0).pitch
            moves.append(12 * np.log2(pitch[pitch > 60]).std())
    assert np.mean(moves) > MIN_SEMITONES


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_speed_divides_the_length(
    speed: float, builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    usual, other = (
        len(speak(voices, inputs_of(builder, SpeechRequest(TEXT, "clara", pace))))
        for pace in (1.0, speed)
    )
    assert other == pytest.approx(usual / speed, rel=0.12)


@pytest.mark.parametrize("voice", VOICES)
def test_an_emphasised_word_is_higher_louder_and_longer_and_the_others_are_not(
    voice: str, builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    start = TEXT.index("river")
    span = TextSpan(start, start + len("river"))
    strong = InflectedSpan(span, EMPHASES["strong"])
    plain, emphasised = (
        inputs_of(builder, SpeechRequest(TEXT, voice, seed=1, inflections=inflections))
        for inflections in ((), (strong,))
    )
    river = TEXT.split().index("river")
    measured = [measure_words(voices, inputs) for inputs in (plain, emphasised)]
    ratios = measured[1] / measured[0]
    length, pitch, loudness = ratios[river]
    assert length == pytest.approx(1 / 0.75, rel=0.15)
    others = np.delete(ratios, [river - 1, river, river + 1], axis=0)
    assert np.all(others[:, 0] == 1)
    # The melody is predicted for the new lengths, so it moves a little elsewhere, too.
    assert np.abs(others[:, 1:] - 1).max() < 0.2, others
    assert pitch > max(1.12, others[:, 1].max())
    assert loudness > max(1.2, others[:, 2].max())


def measure_words(voices: QuartetVoices, inputs: SentenceInput) -> Floats2:
    """[W, 3]: each word's seconds, its median pitch in Hz and its amplitude."""
    assert isinstance(inputs.voice, str)
    speaker = voices.network.find_speaker(voices.speakers[inputs.voice])
    sentence = plan_sentence(voices.network, inputs.phones, speaker, 1.0, inputs.inflections)
    sound = np.concatenate(list(synthesize(sentence.predict_spectra(), stream_noise(0), BLOCKS)))
    ends = np.cumsum(sentence.durations).astype(int) * 2
    rows = []
    for first, last in inputs.words:
        frames = slice(ends[first - 1], ends[last - 1])
        pitch = sentence.pitch[frames]
        loud = sound[frames.start * HOP : frames.stop * HOP]
        rows.append((len(pitch), np.median(pitch[pitch > 60]), np.sqrt(np.mean(loud**2))))
    return np.array(rows)


def test_a_higher_sentence_is_as_long_and_still_a_sentence(
    builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    """Pitch alone changes neither the words' places nor what is heard."""
    whole = InflectedSpan(TextSpan(0, len(TEXT)), Inflection(pitch=1.2))
    usual, higher = (
        speak(voices, inputs_of(builder, SpeechRequest(TEXT, "ben", inflections=inflections)))
        for inflections in ((), (whole,))
    )
    assert len(usual) == pytest.approx(len(higher), abs=HOP * 4)
    assert waveform.faults(higher, voices.sample_rate, lossy=True) == []
    heard = transcribe((higher * 32767).astype(np.int16), voices.sample_rate)
    assert word_error_rate([TEXT], [heard]) <= 0.25, heard


def test_sentences_are_a_breath_apart(
    builder: EnglishRequestBuilder, voices: QuartetVoices
) -> None:
    request = SpeechRequest("Good morning. The kettle is on.", "clara")
    first, second = (
        speak(voices, inputs)
        for piece in builder.build("r", request)
        if isinstance(inputs := piece.inputs["voice"], SentenceInput)
    )
    loud = 0.02 * np.abs(first).max()
    after, before = (
        np.flatnonzero(np.abs(first) > loud)[-1],
        np.flatnonzero(np.abs(second) > loud)[0],
    )
    pause_s = (len(first) - after + before) / voices.sample_rate
    assert 0.25 < pause_s < 0.5


def test_each_sentence_is_a_piece(builder: EnglishRequestBuilder) -> None:
    text = "One. Two three."
    pieces = builder.build("r", SpeechRequest(text, "clara"))
    spans = [text[word.start : word.end] for piece in pieces for word in piece.words]
    assert spans == ["One", "Two", "three"]
    assert builder.build("r", SpeechRequest("...", "clara")) == ()
    with pytest.raises(InvalidRequest, match="English"):
        builder.build("r", SpeechRequest("猫が好き", "clara"))


def test_every_openai_voice_is_one_of_the_four(builder: EnglishRequestBuilder) -> None:
    assert [voice.id for voice in builder.voices] == list(VOICES)
    aliases = [alias for voice in builder.voices for alias in voice.aliases]
    assert len(aliases) == len(set(aliases)) == 13
    genders = {alias: voice.gender for voice in builder.voices for alias in voice.aliases}
    assert (genders["nova"], genders["onyx"]) == ("female", "male")


def test_bad_folders(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=CONFIG_FILE):
        load_voices(tmp_path, CPU)
    config = json.loads((weights / CONFIG_FILE).read_text())
    (tmp_path / CONFIG_FILE).write_text(json.dumps(config | {"voices": []}))
    with pytest.raises(ConfigError, match="empty"):
        load_voices(tmp_path, CPU)
    shutil.copy(weights / CONFIG_FILE, tmp_path)
    with pytest.raises(ConfigError, match=WEIGHTS_FILE):
        load_voices(tmp_path, CPU)
    tensors = load_file(weights / WEIGHTS_FILE)
    save_file({k: v for k, v in tensors.items() if "gamma" not in k}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(ConfigError, match="gamma"):
        load_voices(tmp_path, CPU)
    with pytest.raises(ConfigError, match="CPU"):
        load_voices(weights, torch.device("cuda"))


def test_an_unknown_voice(builder: EnglishRequestBuilder, voices: QuartetVoices) -> None:
    inputs = inputs_of(builder, SpeechRequest("Hello.", "clara"))
    with pytest.raises(RequestFailed, match="emma"):
        list(voices.synthesize(replace(inputs, voice="emma")))


def test_its_sound_is_known_before_it_has_started(voices: QuartetVoices) -> None:
    """The server lists it while it loads."""
    model = create_service(*plan_services(["quartet"])).get_model("quartet")
    assert (model.sample_rate, model.channels) == (voices.sample_rate, voices.channels)
