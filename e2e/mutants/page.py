"""Faults of the page: before the player, in it, and behind it."""

from __future__ import annotations

from .mutant import Mutant

PLAYER = "frontend/cantata_web/static/player"
WORKLET = f"{PLAYER}/worklet.js"
RENDERED = "    this.renderer.render(block, currentTime);\n"
DEVICE = ("e2e/test_device.py::test_the_device_gets_the_servers_speech_and_nothing_else",)
SCRIPTS = ("frontend/tests/test_player.py",)


def _behind(name: str, fault: str, script: str) -> Mutant:
    """Behind the player's own record of what it played."""
    return Mutant(name, fault, WORKLET, RENDERED, f"{RENDERED}    {script}\n", DEVICE)


PAGE = (
    _behind(
        "device-hole",
        "behind the player: 5 ms of silence each second",
        "if (currentTime % 1 < 0.005) block.forEach((out) => out.fill(0));",
    ),
    _behind(
        "device-offset",
        "behind the player: an offset of 0.02",
        "block.forEach((out) => out.forEach((level, i) => (out[i] = level && level + 0.02)));",
    ),
    _behind(
        "device-level",
        "behind the player: half the level",
        "block.forEach((out) => out.forEach((level, i) => (out[i] = level / 2)));",
    ),
    _behind(
        "device-reversed",
        "behind the player: a block backwards each second",
        "if (currentTime % 1 < 0.005) block.forEach((out) => out.reverse());",
    ),
    Mutant(
        "one-channel",
        "the right loudspeaker gets nothing",
        f"{PLAYER}/renderer.js",
        "    for (const out of block.slice(channels)) out.set(own[0]);\n",
        "",
        DEVICE,
    ),
    Mutant(
        "pushed-twice",
        "each message of sound is played twice",
        f"{PLAYER}/player.js",
        '    this.#post({ type: "pcm", samples }, [samples.buffer]);\n',
        '    this.#post({ type: "pcm", samples: samples.slice() });\n'
        '    this.#post({ type: "pcm", samples }, [samples.buffer]);\n',
        DEVICE,
    ),
    Mutant(
        "starts-late",
        "sound begins 500 ms after its first packet",
        f"{PLAYER}/playback.js",
        "frames >= this.reserveSeconds * this.sampleRate;",
        "frames >= (this.reserveSeconds + 0.5) * this.sampleRate;",
        ("e2e/test_device.py::test_sound_begins_soon_after_its_first_packet",),
    ),
    Mutant(
        "queue-shifted",
        "the player repeats a chunk's first sample and loses its last",
        f"{PLAYER}/queue.js",
        "this.#chunk(this.#first)[this.#at] / 32768;",
        "this.#chunk(this.#first)[Math.max(0, this.#at - 1)] / 32768;",
        SCRIPTS,
    ),
    Mutant(
        "stop-ignored",
        "Stop does not stop",
        f"{PLAYER}/playback.js",
        "if (this.phase === Phase.PLAYING) this.phase = Phase.STOPPING;",
        "if (this.phase === Phase.PLAYING) return;",
        SCRIPTS,
    ),
    Mutant(
        "page-words-late",
        "the page's words 300 ms late",
        "frontend/cantata_web/static/speech/words.js",
        "start: atSeconds + word.start,",
        "start: atSeconds + word.start + 0.3,",
        ("e2e/test_device.py::test_sound_resumes_after_a_pause_where_its_word_begins",),
    ),
)
