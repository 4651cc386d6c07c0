"""The client of Wyoming's own package, used as Home Assistant uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeVoice,
)

from cantata_bench.asr import transcribe, word_error_rate
from documented import HOWTOS, fill_in, read_block

from .conftest import Address
from .listening import SENTENCES, WORST_WER, assert_heard, assert_words, decode, samples
from .speaking import RATE, frames

pytestmark = pytest.mark.e2e


async def sound_until(client: AsyncTcpClient, last: str) -> tuple[bytes, int]:
    sound, rate = b"", 0
    while (event := await client.read_event()) is not None and event.type != last:
        if AudioChunk.is_type(event.type):
            chunk = AudioChunk.from_event(event)
            sound, rate = sound + chunk.audio, chunk.rate
    assert event is not None
    return sound, rate


async def test_described_and_spoken(server: Address) -> None:
    async with AsyncTcpClient("127.0.0.1", server.wyoming_port) as client:
        await client.write_event(Describe().event())
        event = await client.read_event()
        assert event is not None
        voice = Info.from_event(event).tts[0].voices[0]
    async with AsyncTcpClient("127.0.0.1", server.wyoming_port) as client:
        wanted = SynthesizeVoice(name=voice.name)
        await client.write_event(Synthesize(text=SENTENCES, voice=wanted).event())
        sound, rate = await sound_until(client, "audio-stop")
    assert_heard(samples(sound), rate)


async def test_streamed_text_is_heard_once(server: Address) -> None:
    async with AsyncTcpClient("127.0.0.1", server.wyoming_port) as client:
        await client.write_event(SynthesizeStart().event())
        for word in SENTENCES.split():
            await client.write_event(SynthesizeChunk(text=f"{word} ").event())
        await client.write_event(Synthesize(text=SENTENCES).event())
        await client.write_event(SynthesizeStop().event())
        sound, rate = await sound_until(client, "synthesize-stopped")
    assert_heard(samples(sound), rate)


async def test_sound_is_written_down(server: Address) -> None:
    async with AsyncTcpClient("127.0.0.1", server.wyoming_port) as client:
        await client.write_event(Describe().event())
        event = await client.read_event()
        assert event is not None
        model = Info.from_event(event).asr[0].models[0]
    async with AsyncTcpClient("127.0.0.1", server.wyoming_port) as client:
        await client.write_event(Transcribe(name=model.name, language=model.languages[0]).event())
        await client.write_event(AudioStart(rate=RATE, width=2, channels=1).event())
        for frame in frames(server):
            await client.write_event(AudioChunk(RATE, 2, 1, frame).event())
        await client.write_event(AudioStop().event())
        while (event := await client.read_event()) is not None:
            if Transcript.is_type(event.type):
                assert_words(Transcript.from_event(event).text)
                return
    raise AssertionError("the connection ended without a transcript")


def test_the_check_of_the_howto(
    server: Address,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = read_block(HOWTOS / "home-assistant.md", "check.py")
    monkeypatch.chdir(tmp_path)
    exec(compile(fill_in(code, {" 10200": f" {server.wyoming_port}"}), "check.py", "exec"), {})
    assert re.search(r"speaks as .*clara.*\nIt hears en", capsys.readouterr().out)
    heard, rate = decode((tmp_path / "dinner.wav").read_bytes())
    assert word_error_rate(["Dinner is ready."], [transcribe(heard, rate)]) <= WORST_WER
