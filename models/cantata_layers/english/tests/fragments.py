# ruff: noqa: RUF001 (characters that look alike are meant)
"""Texts that property tests put together: what has rules of its own, and any Unicode."""

from __future__ import annotations

from hypothesis import strategies as st

FRAGMENTS = (
    "Dr.", "St.", "p.m.", "U.S.", "$5", "-$1.50", "3:05", "1/2", "km/h", "http://", "a.com",
    "World", "War", "II", "Henry", "5%", "1st", "-", "—", "...", "e.g.", "'s", "McX", "GPUs",
    "No.", "Mar", "5", "2024", "1,234", "²", "½", "°C", "\n", "\n\n", "&amp;", "<b>", ":)",
    "[[AA]]", "[[/kæt/]]", "[[kæt]]", "[[ɑ̃]]", ":[", "α", "αβ", "Ω", "㎑", "ﬁ", "℡", "⒈", "３",
    "\u202f", "3,5", "1.234,5", "XIV", "iii", "part ", "pp. ", "Mon", "Jan", "–", '12"', "6'", "x",
    "A320-200", "#1234-5678", "code is 482913", "PIN 12345", "f(x)", "arr[0]", "a[i][j]", "{", "}",
    "\\frac{1}{2}", "\\n", "\\\\n", "\\alpha", "0x1F", "#FF5733", "**", "^{", "_", "/", "12/05",
    "4.5/5", "1/3rd", "Psalm 23:4", "1 Cor 13:4", "Salem, MA", "IL 62704", "PO Box 1", "no. 5",
    "mcg", "⁻³", "Rs. 5", "UPS", "NGOs", "NaCl", "40°42'N", "9.30am", "15-Mar-2024", "830s", "(s)",
    "--flag", "::", "shed a tear", "5'10½\"", "2 ½", "1/2 kg", "kg·m⁻³", "W/(m²·K)", "mg/kg/day",
    "10⁸ m", "737-800", "ISO 9001:2015", "is your code", "ending in 4242", "DE89 3704 0044", "x2",
    "1:10,000", "a ratio of", "USD 5-10", "tokens/s", "/1M tokens", "5kg-10kg", "UTC-5", "500-1000",
    "~/a", "C:\\a", "record", "to", "@a_b", "401(k)", "v1.0-beta.2",
    "😀", "é", "e\u0301", "日本", "x" * 70, "9" * 50, "\ud800", "\x00",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map(" ".join),
)
