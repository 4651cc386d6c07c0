"""`make screenshots`: the pictures in docs/, of a real server on this machine.

The figures on them are this machine's: take them while nothing else runs.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from cantata_bench.server import running_server

from .chromium import launch_chromium
from .read_page import ReadPage
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

DOCS = Path(__file__).parent.parent / "docs"
SIZE: ViewportSize = {"width": 1280, "height": 740}  # down to the player bar
MIDDLE_S = 2.4  # of the text shown there
STREAMS = 8
LAB_SIZE: ViewportSize = {"width": 1280, "height": 1190}  # down to the first charts
READ_SIZE: ViewportSize = {"width": 1024, "height": 760}
STORY = """# The mill at the ford

Two brothers kept the mill, and each of them thought it was his own. The elder opened the gate in
the morning, and the younger closed it at night; between the two the water did as it pleased.

One spring the miller from the next valley came down the road with a cart of rye. "Whose mill is
it?" he asked. "Mine," said both of them, and then nobody spoke for a while.

The miller listened to the wheel. "It seems to be the river's," he said, and began to unload.
"""
RECORDING_SIZE: ViewportSize = {"width": 1024, "height": 740}
RECORDING_COLOURS = 48
MIN_FRAME_MS = 80
LAST_FRAME_MS = 2_500
MAX_RECORDING_BYTES = 2_000_000

Scheme = Literal["light", "dark"]


@contextmanager
def opened(browser: Browser, url: str, size: ViewportSize, scheme: Scheme) -> Iterator[Page]:
    """The page in a tab of its own, ready to speak."""
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    SpeechPage(page).open(url)
    yield page
    context.close()


def speaking(browser: Browser, url: str, scheme: Scheme, file: Path) -> None:
    """The page in the middle of a sentence."""
    with opened(browser, url, SIZE, scheme) as page:
        SpeechPage(page).press("Speak")
        page.wait_for_function(
            f"window.cantata.heardSeconds > {MIDDLE_S}", timeout=SPEECH_DEADLINE_MS
        )
        page.screenshot(path=file)


def reading(browser: Browser, url: str, file: Path) -> None:
    """The tab that reads along, in the middle of a page."""
    with opened(browser, url, READ_SIZE, "light") as page:
        read_page = ReadPage(page)
        read_page.show()
        read_page.choose("mill.md", STORY.encode())
        read_page.pages.wait_for()
        read_page.press("Play")
        read_page.wait_past(STORY.index("miller"))
        page.mouse.move(0, 0)
        save_small(page.screenshot(), file)


def save_small(png: bytes, file: Path) -> None:
    """Save a picture in few colours: it has little but text."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(RECORDING_COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def parallel(browser: Browser, url: str, file: Path) -> None:
    """The tab of parallel streams after many have ended, and once the charts show that."""
    with opened(browser, url, LAB_SIZE, "light") as page:
        speech_page = SpeechPage(page)
        speech_page.tab("Lab")
        speech_page.streams.fill(str(STREAMS))
        for _ in range(2):  # in the first run, the browser is still compiling
            speech_page.press("Start")
            page.wait_for_function(
                "window.cantata.streams.length > 0"
                " && window.cantata.streams.every((stream) => stream.endedAt !== null)",
                timeout=SPEECH_DEADLINE_MS,
            )
            page.get_by_text("running 0").wait_for()
        page.mouse.move(0, 0)
        page.screenshot(path=file)


@dataclass(frozen=True)
class Frame:
    """A picture of the page and when it was drawn, in seconds."""

    png: bytes
    at: float


def record(browser: Browser, url: str) -> list[Frame]:
    """A sentence from the click to its end, as the browser drew it."""
    frames: list[Frame] = []
    with opened(browser, url, RECORDING_SIZE, "light") as page:
        protocol = page.context.new_cdp_session(page)

        def keep(event: dict[str, Any]) -> None:
            frames.append(Frame(base64.b64decode(event["data"]), event["metadata"]["timestamp"]))
            protocol.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        protocol.on("Page.screencastFrame", keep)
        protocol.send("Page.startScreencast", {"format": "png"})
        speech_page = SpeechPage(page)
        speech_page.press("Speak")
        speech_page.wait_for_state("done")
        protocol.send("Page.stopScreencast")
    return frames


def save_recording(frames: Sequence[Frame], file: Path) -> None:
    """Save frames as an animated GIF; each lasts until the next one was drawn."""
    kept = [frames[0]]
    for frame in frames[1:]:
        if 1000 * (frame.at - kept[-1].at) >= MIN_FRAME_MS:
            kept.append(frame)
    lasting = [round(1000 * (after.at - frame.at)) for frame, after in pairwise(kept)]
    pictures = [Image.open(io.BytesIO(frame.png)).convert("RGB") for frame in kept]
    # One palette for all, of a picture that has every colour: what does not move stays the same.
    palette = pictures[len(pictures) // 2].quantize(RECORDING_COLOURS)
    drawn = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    drawn[0].save(
        file, save_all=True, append_images=drawn[1:], duration=[*lasting, LAST_FRAME_MS], loop=0
    )
    size = file.stat().st_size
    if size > MAX_RECORDING_BYTES:
        raise RuntimeError(f"{file} has {size} bytes; at most {MAX_RECORDING_BYTES} are wanted")


def main() -> None:
    """Starts a server and takes all of them."""
    log = Path("artifacts/screenshots-server.log")
    with running_server(log) as server, sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        speaking(browser, server.url, "light", DOCS / "page.png")
        speaking(browser, server.url, "dark", DOCS / "page-dark.png")
        reading(browser, server.url, DOCS / "read.png")
        parallel(browser, server.url, DOCS / "parallel.png")
        save_recording(record(browser, server.url), DOCS / "speaking.gif")
        browser.close()


if __name__ == "__main__":
    main()
