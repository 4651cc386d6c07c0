#!/usr/bin/env bash
# The browser tests drive the system's Chromium through Playwright, whose wheel brings a Node.js that
# links to libatomic, and Firefox with PulseAudio, without which it plays nothing where there is no
# sound device. The microphone's tests call PortAudio. Install Debian's packages of what is missing:
# scripts/browser-packages.sh PYTHON
set -euo pipefail
install=$(dirname "$0")/apt-install.sh
if ! "$1" -c 'import ctypes; ctypes.CDLL("libatomic.so.1")' 2>/dev/null; then
  "$install" libatomic1
fi

find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
# The whole browser takes twice its CPU: it is the second choice.
if ! command -v chromium-headless-shell >/dev/null; then
  "$install" chromium-headless-shell || find_chromium >/dev/null || "$install" chromium
fi

if ! "$1" -c 'import sounddevice' 2>/dev/null; then
  "$install" libportaudio2 || echo "The microphone will not be tested" >&2
fi

missing=()
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || missing+=(firefox-esr)
command -v pulseaudio >/dev/null || missing+=(pulseaudio)
if [ ${#missing[@]} -gt 0 ]; then "$install" "${missing[@]}" || echo "Firefox will not be tested" >&2; fi
