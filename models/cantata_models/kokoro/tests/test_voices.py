"""Which voices there are, their mixtures, and bad files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_models.kokoro.voices import (
    KokoroVoiceFile,
    list_voices,
    load_styles,
    name_aliases,
    parse_blend,
)

NAMES = ("af_bella", "af_sky", "bm_lewis")


def voice(name: str) -> KokoroVoiceFile:
    return KokoroVoiceFile(name, Path(f"{name}.pt"))


def test_what_a_name_tells() -> None:
    assert voice("af_bella").description == "American English, female"
    assert voice("bm_lewis").description == "British English, male"
    japanese = voice("jf_alpha")
    assert (japanese.description, japanese.speaks_english) == ("Japanese, female", False)
    own = voice("grandma")
    assert (own.description, own.gender, own.speaks_english) == ("American English", None, True)


def test_the_default_voice_is_first_and_english_ones_follow(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"voices.*af_heart\.pt"):
        list_voices(tmp_path)
    (tmp_path / "voices").mkdir()
    for name in ("af_bella", "af_heart", "ef_dora", "zf_xiaoni", "bf_emma"):
        (tmp_path / "voices" / f"{name}.pt").touch()
    found = [one.name for one in list_voices(tmp_path)]
    assert found == ["af_heart", "af_bella", "bf_emma", "ef_dora", "zf_xiaoni"]


def test_openai_s_names_go_to_voices_that_are_called_so() -> None:
    names = ("af_heart", "af_nova", "am_onyx", "jf_alpha", "sage")
    aliases = name_aliases([voice(name) for name in names])
    assert "nova" in aliases["af_nova"]
    assert "onyx" in aliases["am_onyx"]
    assert aliases["jf_alpha"] == ()
    every = [alias for own in aliases.values() for alias in own]
    assert len(every) == len(set(every)) == 12, "the checkpoint's own sage keeps its name"


@pytest.mark.parametrize(
    ("written", "shares"),
    [
        ("af_bella", {"af_bella": 1.0}),
        ("af_bella+af_sky", {"af_bella": 0.5, "af_sky": 0.5}),
        (" af_bella (2) + af_sky(1) ", {"af_bella": 2 / 3, "af_sky": 1 / 3}),
        ("bm_lewis(0.5)+af_sky(1.5)", {"bm_lewis": 0.25, "af_sky": 0.75}),
        ("af_sky+af_sky+af_bella(2)", {"af_sky": 0.5, "af_bella": 0.5}),
    ],
)
def test_a_mixture(written: str, shares: dict[str, float]) -> None:
    found = parse_blend(written, NAMES)
    assert found == pytest.approx(shares)
    assert list(found) == list(shares)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "is no voice"),
        ("af_bella+", "is no voice"),
        ("af_bella(2", "is no voice"),
        ("af_bella+af_nobody", "no voice 'af_nobody'; voices: af_bella, af_sky, bm_lewis"),
        (
            "af_bella(0)+af_sky",
            "weight of af_bella must be a number above 0 and at most 1000000, not '0'",
        ),
        ("af_bella(-1)", "above 0 and at most 1000000, not '-1'"),
        ("af_bella(nan)", "above 0"),
        ("af_bella(inf)", "above 0"),
        ("af_bella(1e999)", "above 0"),
        ("af_bella(1e308)+af_sky(1e308)", "at most 1000000, not '1e308'"),
        ("af_bella()", "above 0 and at most 1000000, not ''"),
        ("af_bella(loud)", "above 0 and at most 1000000, not 'loud'"),
    ],
)
def test_a_bad_mixture_is_refused(written: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^voice: ") as refusal:
        parse_blend(written, NAMES)
    assert message in str(refusal.value)
    assert refusal.value.param == "voice"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (torch.zeros(9, 1, 8), r"\[10, 1, 8\].*this is \[9, 1, 8\]"),
        (torch.zeros(10, 8), r"this is \[10, 8\]"),
        (torch.zeros(10, 1, 4), r"this is \[10, 1, 4\]"),
        ({"style": torch.zeros(10, 1, 8)}, "this is dict"),
        (torch.full((10, 1, 8), float("nan")), "not finite"),
        (None, "not a readable pickle"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "af_bella.pt"
    if content is None:
        path.write_bytes(b"no pickle")
    else:
        torch.save(content, path)
    with pytest.raises(ConfigError, match=message) as refusal:
        load_styles([KokoroVoiceFile("af_bella", path)], max_phones=10, style=4)
    assert "af_bella.pt" in str(refusal.value)


def test_more_rows_than_phones_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "af_bella.pt"
    torch.save(torch.arange(88.0).reshape(11, 1, 8).half(), path)
    styles = load_styles([KokoroVoiceFile("af_bella", path)], max_phones=10, style=4)["af_bella"]
    assert (styles.shape, styles.dtype) == ((10, 8), torch.float32)
