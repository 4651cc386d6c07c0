"""Texts that follow each other: with spaces where their language has them."""

from __future__ import annotations

import pytest

from cantata.contract.data.languages import get_primary_language, join_texts


@pytest.mark.parametrize(
    ("language", "texts", "joined"),
    [
        ("en", ("It rains.", "We stay."), "It rains. We stay."),
        ("ko", ("비가 와요.", "집에 있어요."), "비가 와요. 집에 있어요."),
        ("zh", ("今天下雨。", "我们在家。"), "今天下雨。我们在家。"),
        ("zh-Hant-TW", ("今天下雨,", "我們在家"), "今天下雨,我們在家"),
        ("yue", ("今日落雨", "我哋喺屋企"), "今日落雨我哋喺屋企"),
        ("ja", ("雨が降る。", "家にいる。"), "雨が降る。家にいる。"),
        ("th", ("วันนี้ฝนตก", "เราอยู่บ้าน"), "วันนี้ฝนตกเราอยู่บ้าน"),
        ("lo", ("ຝົນຕົກ", "ຢູ່ເຮືອນ"), "ຝົນຕົກຢູ່ເຮືອນ"),
        ("my", ("မိုးရွာတယ်", "အိမ်မှာ"), "မိုးရွာတယ်အိမ်မှာ"),
        ("km", ("ភ្លៀង", "នៅផ្ទះ"), "ភ្លៀងនៅផ្ទះ"),
        # Foreign words: with a space between them, without one beside the language's own.
        ("zh", ("他用 Visual", "Studio 写代码"), "他用 Visual Studio 写代码"),
        ("ja", ("これは GPU", "です"), "これは GPUです"),
        ("zh", ("他说:“好。”", "“走吧。”"), "他说:“好。”“走吧。”"),
        ("en", ("They call it 北京", "or Beijing."), "They call it 北京 or Beijing."),
        # Unknown: by the characters on both sides.
        ("", ("今天下雨。", "我们在家。"), "今天下雨。我们在家。"),
        ("", ("Es regnet.", "Wir bleiben."), "Es regnet. Wir bleiben."),
        ("en", ("", "It rains.", "", "We stay.", ""), "It rains. We stay."),
    ],
)
def test_texts_are_joined_as_their_language_writes_them(
    language: str, texts: tuple[str, ...], joined: str
) -> None:
    assert join_texts((text, language) for text in texts) == joined


def test_the_region_of_a_tag_does_not_matter() -> None:
    assert [get_primary_language(tag) for tag in ("pt-BR", "pt_BR", "PT")] == ["pt"] * 3
