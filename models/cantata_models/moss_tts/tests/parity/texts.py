"""Texts that MOSS-TTS-Nano cuts into parts: cases by hand, and random ones."""

from __future__ import annotations

import random

from cantata_models.moss_tts.tests.parity.scenarios import CHINESE, ENGLISH, LONG

BY_HAND = (
    ENGLISH,
    CHINESE,
    LONG,
    "hi",
    "Hi!",
    "   spaces   and\r\nlines  ",
    "12 eggs cost 3.50 dollars, 13 cost 4.",
    "Really?! \"Yes.\" 'No.' (Maybe.) [Or not.] {So.} She went.",
    "你好！（真的吗？）“是的。”他说：走吧；好。再见",  # noqa: RUF001
    "Mixed 中文 and English, one after the other。 And back again.",
    "こんにちは、世界。今日はいい天気ですね",
    "안녕하세요, 만나서 반갑습니다. 오늘은 날씨가 좋네요",
    "Averyveryverylongwordwithoutanyspaceinitthatmustbecutsomewhereanyway",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "A, b; c: d, e; f: g, h; i: j, k; l: m, n; o: p, q; r: s, t; u: v, w; x: y, z.",
    "...",
    "?!",
    "élan vital, über alles — “quoted”… and then … nothing",
)
PIECES = (
    *("the", "rain", "in", "user", "3.5", "Mr", "stop", "一二三", "天气", "é", "U.S."),
    *(". ", "! ", "? ", "。", "！", "？", "; ", "；", ", ", "，", "、", ": ", "：", ".", ","),  # noqa: RUF001
    *("” ", '"', ") ", "」", "  ", "\n", " ", " ", " ", " "),
)
PART_TOKENS = (12, 40)
"""Most tokens of a part. Tiny tokenizers have a token for nearly every character."""


def _random_texts(count: int) -> tuple[str, ...]:
    source = random.Random(3)
    texts = ("".join(source.choices(PIECES, k=source.randint(3, 40))) for _ in range(count))
    return tuple(text for text in texts if text.strip())


TEXTS = (*BY_HAND, *_random_texts(60))
