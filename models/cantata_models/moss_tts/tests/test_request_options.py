"""Options of both models: what is accepted, and what an error says."""

from __future__ import annotations

from typing import Any

import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.request_options import parse_fields
from cantata_models.moss_tts.prompt import MossMode
from cantata_models.moss_tts.request_options import (
    LANGUAGES,
    LocalOptions,
    MossOptions,
    NanoOptions,
    language_name,
    speaking_mode,
)


def test_everything_has_a_default() -> None:
    for kind in (LocalOptions, NanoOptions):
        options = parse_fields({}, kind)
        assert options.max_new_tokens is None
        assert speaking_mode(options, recording=False, transcript=False) is MossMode.PLAIN
    assert parse_fields({}, NanoOptions).voice_clone_max_text_tokens == 75


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (LocalOptions, {"tokens": 0}, "tokens: .*greater than or equal to 1, not 0"),
        (LocalOptions, {"tokens": "40"}, "tokens: .*integer, not '40'"),
        (LocalOptions, {"top_p": 0.0}, "top_p: .*greater than 0"),
        (LocalOptions, {"text_temperature": -1.0}, "text_temperature: .*greater than or equal"),
        (NanoOptions, {"repetition_penalty": 3.0}, "repetition_penalty: .*less than or equal to 2"),
        (NanoOptions, {"tokens": 40}, "tokens: Extra inputs"),
        (NanoOptions, {"language": "German"}, "language: Extra inputs"),
        (LocalOptions, {"voice_clone_max_text_tokens": 5}, "voice_clone_max_text_tokens: Extra"),
        (NanoOptions, {"mode": "plain"}, "mode: .*'voice_clone' or 'continuation', not 'plain'"),
    ],
)
def test_wrong_values_are_named(
    kind: type[MossOptions], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        parse_fields(values, kind)
    assert caught.value.param == next(iter(values))


@pytest.mark.parametrize(
    ("mode", "transcript", "wanted"),
    [
        (None, False, MossMode.CLONE),
        (None, True, MossMode.CONTINUATION),
        ("voice_clone", False, MossMode.CLONE),
        ("voice_clone", True, MossMode.CLONE),
        ("continuation", True, MossMode.CONTINUATION),
    ],
)
def test_what_a_recording_is_for(mode: str | None, transcript: bool, wanted: MossMode) -> None:
    options = parse_fields({} if mode is None else {"mode": mode}, NanoOptions)
    assert speaking_mode(options, recording=True, transcript=transcript) is wanted


@pytest.mark.parametrize(
    ("values", "recording", "transcript", "param", "message"),
    [
        ({"mode": "voice_clone"}, False, False, "ref_audio", "needs ref_audio"),
        ({"mode": "continuation"}, True, False, "ref_text", "ref_text is missing"),
        ({"tokens": 40}, True, True, "tokens", "tokens is not for a continuation"),
    ],
)
def test_what_a_mode_needs(
    values: dict[str, Any], recording: bool, transcript: bool, param: str, message: str
) -> None:
    options = parse_fields(values, LocalOptions)
    with pytest.raises(InvalidRequest, match=message) as caught:
        speaking_mode(options, recording=recording, transcript=transcript)
    assert caught.value.param == param


def test_a_clone_may_have_a_length() -> None:
    options = parse_fields({"tokens": 40}, LocalOptions)
    assert speaking_mode(options, recording=True, transcript=False) is MossMode.CLONE


def test_languages_by_name_and_tag() -> None:
    assert language_name(None) is None
    assert language_name("Auto") is None
    assert language_name("zh") == language_name(" chinese ") == "Chinese"
    assert language_name("fa") == "Persian (Farsi)"
    assert {language_name(name) for name in LANGUAGES.values()} == set(LANGUAGES.values())
    with pytest.raises(InvalidRequest, match="'Klingon' is not spoken; valid: Auto, Chinese, "):
        language_name("Klingon")
