"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Without windows, the first takes half the CPU of the second."""
# Chromium obeys the last such list alone, so this one repeats what matters of Playwright's.
FEATURES_OFF = (
    "WebUIOmniboxPopup",  # a renderer for each window's address bar: half a CPU second per tab
    "WebUIOmniboxAimPopup",  # another one
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
ARGUMENTS = [
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--no-sandbox",  # in containers the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a microphone that beeps
    "--use-fake-ui-for-media-stream",
]


def launch_chromium(
    playwright: Playwright, microphone: Path | None = None, *, once: bool = False
) -> Browser:
    """Starts it without a window.

    Args:
        playwright: drives it.
        microphone: a WAV file that its microphone hears, again and again.
        once: from its beginning whenever the microphone is opened, and then silence.

    Raises:
        FileNotFoundError: none is installed.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise FileNotFoundError(f"none of {', '.join(NAMES)} is here: apt-get install {NAMES[0]}")
    file = f"{microphone}%noloop" if once else microphone
    heard = [] if microphone is None else [f"--use-file-for-fake-audio-capture={file}"]
    return playwright.chromium.launch(executable_path=found, args=[*ARGUMENTS, *heard])


class Driver:
    """Playwright and its Chromium, each started when it is first asked for."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def playwright(self) -> Playwright:
        if self._playwright is None:
            self._playwright = sync_playwright().start()
        return self._playwright

    def browser(self) -> Browser:
        """The same browser as before, if it still runs."""
        if self._browser is None or not self._browser.is_connected():
            self._browser = launch_chromium(self.playwright())
        return self._browser

    def close(self) -> None:
        """Ends both; asking again starts others."""
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()
        self._browser = self._playwright = None
