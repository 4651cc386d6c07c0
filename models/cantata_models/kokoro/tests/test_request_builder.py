# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Texts, phones, voices and mixtures, as the stage gets them."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata_layers.g2p.said_parts import Alphabet
from cantata_layers.misaki.phones import vocabulary
from cantata_models.kokoro.random_checkpoint import TINY
from cantata_models.kokoro.request_builder import KokoroRequestBuilder, load_builder
from cantata_models.kokoro.tests.parity.scenarios import PLAIN, KokoroCheckpointKey
from cantata_models.kokoro.voices import KokoroInput, KokoroVoiceFile

LETTERS = {number: letter for letter, number in TINY["vocab"].items()}


@pytest.fixture
def builder(
    checkpoints: dict[KokoroCheckpointKey, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> KokoroRequestBuilder:
    """Whose Japanese voice has nothing to read its language."""
    hide(monkeypatch, "fugashi")
    folder = tmp_path / "copy"
    shutil.copytree(checkpoints[PLAIN], folder)
    shutil.copy(folder / "voices" / "af_heart.pt", folder / "voices" / "jf_alpha.pt")
    return load_builder(folder)


def hide(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Pretend that a package is not installed."""
    monkeypatch.setattr(
        "cantata_layers.g2p.front_ends.find_spec",
        lambda name: None if name == module else find_spec(name),
    )


def build(
    builder: KokoroRequestBuilder, text: str, voice: str = "af_heart", **fields: Any
) -> tuple[PipelineRequest, ...]:
    return builder.build("r", SpeechRequest(text, voice, **fields))


def inputs(piece: PipelineRequest) -> KokoroInput:
    found = piece.inputs["voice"]
    assert isinstance(found, KokoroInput)
    return found


def spell(piece: PipelineRequest) -> str:
    given = inputs(piece)
    assert given.phones[0] == given.phones[-1] == 0
    return "".join(LETTERS[number] for number in given.phones[1:-1])


def said_words(text: str, piece: PipelineRequest) -> list[tuple[str, str]]:
    """Each word as it is written and as it is said."""
    given = inputs(piece)
    return [
        (
            text[span.start : span.end],
            "".join(LETTERS[number] for number in given.phones[start:end]),
        )
        for span, (start, end) in zip(piece.words, given.words, strict=True)
    ]


def test_a_text_is_read_into_the_checkpoint_s_vocabulary(builder: KokoroRequestBuilder) -> None:
    text = "Dr. Smith paid $12, twice. It rained."
    first, second = build(builder, text, seed=5)
    assert spell(first) == "dˈɑktəɹ smˈɪθ pˈAd twˈɛlv dˈɑləɹz, twˈIs."
    assert ("$12", "twˈɛlv dˈɑləɹz") in said_words(text, first)
    assert said_words(text, second)[-1][0] == "rained"
    assert [first.request_id, second.request_id] == ["r-0", "r-1"]
    assert (inputs(first).seed, inputs(second).seed) == (5, 6)
    assert (inputs(first).begins, inputs(second).begins) == (True, False)


def test_a_british_voice_has_a_british_accent(builder: KokoroRequestBuilder) -> None:
    (american,) = build(builder, "The car goes home.")
    (british,) = build(builder, "The car goes home.", "bf_emma")
    assert ("ɹ" in spell(american), "ɹ" in spell(british)) == (True, False)
    assert "Q" in spell(british)


def test_letters_that_the_vocabulary_lacks_are_left_out(
    checkpoints: dict[KokoroCheckpointKey, Path],
) -> None:
    builder = load_builder(checkpoints[PLAIN])
    vocabulary = dict(builder._reader._alphabet.vocabulary)
    del vocabulary["ˈ"]
    object.__setattr__(builder._reader._alphabet, "vocabulary", vocabulary)
    text = "She paid twice."
    (piece,) = build(builder, text)
    assert said_words(text, piece) == [("She", "ʃˌi"), ("paid", "pAd"), ("twice", "twIs")]


def test_phones_of_a_client(builder: KokoroRequestBuilder) -> None:
    text = "Say [[həˈloʊ]] now."
    (piece,) = build(builder, text)
    assert ("[[həˈloʊ]]", "həˈlO") in said_words(text, piece)
    with pytest.raises(InvalidRequest, match=r"\[\[k9t\]\]"):
        build(builder, "Say [[k9t]].")


def test_another_language_is_spoken_from_phones(builder: KokoroRequestBuilder) -> None:
    text = "[[ˈola]], [[mˈundo]]! [[ke tal]]?"
    first, second = build(builder, text, "jf_alpha")
    assert spell(first) == "ˈola, mˈundo!"
    assert spell(second) == "ke tal?"
    assert said_words(text, first) == [("[[ˈola]]", "ˈola"), ("[[mˈundo]]", "mˈundo")]
    assert said_words(text, second) == [("[[ke tal]]", "ke tal")]
    assert builder.warm_up.voice == "af_heart"


def test_many_phones_are_spoken_in_parts(builder: KokoroRequestBuilder) -> None:
    pieces = build(builder, "[[kanta]] " * 300, "jf_alpha")
    assert sum(len(piece.words) for piece in pieces) == 300
    assert all(len(inputs(piece).phones) <= 512 for piece in pieces)
    assert len(pieces) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("世界", r"'jf_alpha' speaks Japanese.*kokoro-ja.*\[\[ola\]\].*af_heart, am_adam, bf_emma"),
        ("[[ola]] mundo", "speaks Japanese"),
        ("[[o9a]]", r"\[\[o9a\]\]: '9' is no phone"),
        ("[[]]", "there are no phones"),
        ("[[ˈ]]", "there are no phones"),
        (f"[[{'a' * 508}]]", "508 phones at once; at most 507"),
    ],
)
def test_what_another_language_cannot_say(
    builder: KokoroRequestBuilder, text: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        build(builder, text, "jf_alpha")
    assert refusal.value.param == "input"


@pytest.mark.parametrize("marks", ["!" * 600, "." * 9_000, ", " * 300])
def test_many_marks_behind_phones(builder: KokoroRequestBuilder, marks: str) -> None:
    pieces = build(builder, f"[[ola]]{marks}[[{'a' * 507}]]{marks}", "jf_alpha")
    assert sum(len(piece.words) for piece in pieces) == 2
    assert all(len(inputs(piece).phones) <= 512 for piece in pieces)


@pytest.mark.parametrize("voice", ["af_heart", "jf_alpha"])
@pytest.mark.parametrize("text", ["...", "?!", "—", "“ ”"])
def test_marks_alone_are_silence(builder: KokoroRequestBuilder, text: str, voice: str) -> None:
    assert build(builder, text, voice) == ()


def build_published(*voices: str) -> KokoroRequestBuilder:
    """With the published vocabulary."""
    files = [KokoroVoiceFile(name, Path()) for name in voices]
    return KokoroRequestBuilder(Alphabet(vocabulary(), 510), files)


def test_texts_of_languages_with_a_front_end() -> None:
    voices = "af_heart jf_alpha zf_xiaoni ff_siwis ef_dora hf_beta if_sara pf_dora"
    builder = build_published(*voices.split())
    assert builder.capabilities.languages == ("en", "es", "fr", "hi", "it", "ja", "pt-BR", "zh")
    letters = {number: letter for letter, number in vocabulary().items()}
    for voice, text, said in (
        ("jf_alpha", "こんにちは、世界。", "koɲɲiʨiβa, sekai."),
        ("zf_xiaoni", "你好，世界！", "ni↓xau↓, ʂɨ↘ʨje↘!"),
        ("jf_alpha+af_heart", "[[ˈola]]、世界", "ˈola, sekai"),
    ):
        (piece,) = build(builder, text, voice)
        given = inputs(piece)
        assert "".join(letters[number] for number in given.phones[1:-1]) == said
        assert [text[span.start : span.end] for span in piece.words][1] == "世界"
    for voice, text, said in (
        ("ef_dora", "¡Hola, mundo!", "ˈola, mˈundo!"),
        ("ff_siwis", "Bonjour, le monde !", "bɔ̃ʒˈuʁ, lə mˈɔ̃d !"),
        ("hf_beta", "नमस्ते, दुनिया।", "nəmˈʌsteː, dˈʊnɪjˌaː"),
        ("if_sara", "Ciao, mondo!", "ʧˈao, mˈondo!"),
        ("pf_dora", "Olá, mundo!", "olˈa, mˈũŋdʊ!"),
    ):
        (piece,) = build(builder, text, voice)
        assert "".join(letters[number] for number in inputs(piece).phones[1:-1]) == said
    with pytest.raises(InvalidRequest, match=r"nothing .* voice 'jf_alpha' reads Japanese"):
        build(builder, "привет", "jf_alpha")


def test_it_says_its_phones() -> None:
    builder = build_published("af_heart", "bf_emma", "jf_alpha")
    assert builder.capabilities.phonemizes
    assert builder.phonemize("The car. Home!", "a") == "ðə kˈɑɹ. hˈOm!"
    assert builder.phonemize("The car.", "en-GB") == "ðə kˈɑː."
    assert builder.phonemize("世界。", "ja") == "sekai."
    assert builder.phonemize("...", "j") == ""
    with pytest.raises(InvalidRequest, match=r"no voice speaks 'z'; valid: a, b, j"):
        builder.phonemize("你好", "z")


@pytest.mark.parametrize(
    ("voice", "module", "extra"),
    [("jf_alpha", "fugashi", "kokoro-ja"), ("zf_xiaoni", "jieba", "kokoro-zh")],
)
def test_a_language_whose_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch, voice: str, module: str, extra: str
) -> None:
    hide(monkeypatch, module)
    builder = build_published("af_heart", voice)
    assert builder.capabilities.languages == ("en",)
    message = rf"{voice}.*pip install 'cantata\[{extra}\]'.*\[\[ola\]\].*af_heart"
    with pytest.raises(InvalidRequest, match=message):
        build(builder, "世界", voice)
    (piece,) = build(builder, "[[sekai]]!", voice)
    assert len(inputs(piece).phones) == 8


def test_other_scripts_are_refused(builder: KokoroRequestBuilder) -> None:
    with pytest.raises(InvalidRequest, match="English"):
        build(builder, "猫が好き")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000,
        "word, " * 1_666,
        "7" * 10_000,
        "[[" + "həlˈO" * 80 + "]]",
        "həlˈO" * 200,  # spelled, with spaces at the end of a part
    ],
)
def test_ten_thousand_characters(builder: KokoroRequestBuilder, text: str) -> None:
    pieces = build(builder, text)
    for given in map(inputs, pieces):
        assert 3 <= len(given.phones) <= 512
        assert all(1 <= begin < end < len(given.phones) for begin, end in given.words)


def test_a_mixture_replaces_the_voice(builder: KokoroRequestBuilder) -> None:
    (piece,) = build(builder, "The car goes home.", "bf_emma(3)+am_adam")
    given = inputs(piece)
    assert (given.voices, given.weights) == (("bf_emma", "am_adam"), (0.75, 0.25))
    assert "Q" in spell(piece), "the first voice's accent"
    (alone,) = build(builder, "The car goes home.")
    assert (inputs(alone).voices, inputs(alone).weights) == (("af_heart",), (1.0,))


@pytest.mark.parametrize("voice", ["af_heart", "jf_alpha"])
def test_ten_thousand_phones(builder: KokoroRequestBuilder, voice: str) -> None:
    pieces = build(builder, "[[kanta]], " * 2_000, voice)
    assert sum(len(piece.words) for piece in pieces) == 2_000
    assert all(len(inputs(piece).phones) <= 512 for piece in pieces)


def test_its_capabilities(builder: KokoroRequestBuilder) -> None:
    able = builder.capabilities
    assert (able.phones, able.paces, able.languages) == (True, (0.5, 2.0), ("en",))
    assert able.voice_blends
    assert [voice.id for voice in builder.voices] == ["af_heart", "am_adam", "bf_emma", "jf_alpha"]
    assert builder.voices[2].gender == "female"
    assert np.unique([alias for voice in builder.voices for alias in voice.aliases]).size == 13
