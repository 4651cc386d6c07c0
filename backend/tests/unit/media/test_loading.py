"""Loading files: turns in which they are decoded.

Base64 comes in the forms in which clients send it.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.errors import InvalidAudio, InvalidImage
from cantata.media.kinds import AUDIO, IMAGE
from cantata.media.loading import Base64Error, MediaLoader, decode_base64


async def test_a_turn_lasts_until_its_thread_is_done_even_if_its_client_has_left() -> None:
    loader = MediaLoader(None)
    may_end, begun = threading.Event(), [threading.Event(), threading.Event()]

    def slow(number: int) -> None:
        begun[number].set()
        assert may_end.wait(60)
        raise ValueError("nobody asks for this")

    try:
        leaving = [asyncio.create_task(loader.decode(lambda n=n: slow(n))) for n in (0, 1)]  # type: ignore[misc]
        for one in begun:
            assert await asyncio.to_thread(one.wait, 60)
        for task in leaving:
            task.cancel()
        assert {type(end) for end in await asyncio.gather(*leaving, return_exceptions=True)} == {
            asyncio.CancelledError
        }
        third = asyncio.create_task(loader.decode(lambda: may_end.is_set()))
        # Work that has no turn to wait for is done meanwhile.
        for _ in range(5):
            await asyncio.to_thread(int)
        assert not third.done()
    finally:
        may_end.set()
    # It ran only after one of the others had ended.
    assert await third


async def test_errors_of_the_work_are_the_callers() -> None:
    def fail() -> None:
        raise ValueError("broken")

    loader = MediaLoader(None)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            await loader.decode(fail)


DATA = bytes(range(256)) + b"\xfb\xff\xfe"
PLAIN = base64.b64encode(DATA).decode()
FORMS = {
    "plain": PLAIN,
    "unpadded": PLAIN.rstrip("="),
    "url-safe": base64.urlsafe_b64encode(DATA).decode(),
    "url-safe, unpadded": base64.urlsafe_b64encode(DATA).decode().rstrip("="),
    "MIME": base64.encodebytes(DATA).decode(),
    "MIME, CRLF": base64.encodebytes(DATA).decode().replace("\n", "\r\n"),
    "spaces": f"  {PLAIN[:40]} {PLAIN[40:]}\t",
    "percent-encoded": quote(PLAIN, safe=""),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_data(form: str) -> None:
    assert decode_base64(FORMS[form]) == DATA


@given(st.binary(max_size=80))
def test_any_data_comes_back_without_padding_and_in_either_alphabet(data: bytes) -> None:
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        assert decode_base64(encoded.decode().rstrip("=")) == data


@pytest.mark.parametrize(
    ("text", "says"),
    [("AAAA!AAA", "'!' at character 4"), ("AAAAA", "cut off"), ("\u00e4AAA", "character 0")],
)
def test_what_is_none_says_where(text: str, says: str) -> None:
    with pytest.raises(Base64Error, match=says):
        decode_base64(text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "head",
    [
        "",
        "data:audio/wav;base64,",
        "data:;base64,",
        "data:audio/ogg;codecs=opus;base64,",
        "data:audio/webm;codecs=vp8,opus;base64,",
        "DATA:Audio/WAV;BASE64,",
        "data:application/octet-stream;base64,",
        " data:audio/mpeg;charset=utf-8;base64,",
    ],
)
async def test_sound_may_be_bare_or_in_a_url(form: str, head: str) -> None:
    loader = MediaLoader(None)
    assert await loader.unpack(head + FORMS[form], AUDIO, "data", 1 << 20) == DATA
    if head:
        assert await loader.load(head + FORMS[form], AUDIO, "data", 1 << 20) == DATA


async def test_a_picture_may_be_bare_base64_where_a_url_is_expected() -> None:
    loader = MediaLoader(None)
    for form in FORMS.values():
        assert await loader.load(form, IMAGE, "url", 1 << 20) == DATA
    with pytest.raises(InvalidImage, match="must be a URL"):
        await loader.load("picture.png", IMAGE, "url", 1 << 20)
    with pytest.raises(InvalidAudio, match="'!' at character"):
        await loader.unpack(PLAIN[:8] + "!" + PLAIN[8:], AUDIO, "data", 1 << 20)
    with pytest.raises(InvalidAudio, match="continue in base64"):
        await loader.unpack("data:audio/wav,RIFF", AUDIO, "data", 1 << 20)
