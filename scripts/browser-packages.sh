#!/usr/bin/env bash
# The browser tests drive the system's Chromium through Playwright, whose wheel brings a Node.js that
# links to libatomic, and Firefox with PulseAudio, without which it plays nothing where there is no
# sound device. The microphone's tests call PortAudio. Install Debian's packages of what is missing:
# scripts/browser-packages.sh PYTHON
set -euo pipefail
install=$(dirname "$0")/apt-install.sh
missing=()
found=
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then found=$name; fi
done
if [ -z "$found" ]; then missing+=(chromium); fi
"$1" -c 'import ctypes; ctypes.CDLL("libatomic.so.1")' 2>/dev/null || missing+=(libatomic1)
if [ ${#missing[@]} -gt 0 ]; then "$install" "${missing[@]}"; fi

if ! "$1" -c 'import sounddevice' 2>/dev/null; then
  "$install" libportaudio2 || echo "The microphone will not be tested" >&2
fi

missing=()
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || missing+=(firefox-esr)
command -v pulseaudio >/dev/null || missing+=(pulseaudio)
if [ ${#missing[@]} -gt 0 ]; then "$install" "${missing[@]}" || echo "Firefox will not be tested" >&2; fi
