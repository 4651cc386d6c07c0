"""Videos: which frames are kept, what is rejected, and what they may cost."""

from __future__ import annotations

import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from cantata.contract.data.chat import VideoPart
from cantata.contract.data.errors import InvalidVideo
from cantata.media.video import MAX_FRAMES, VideoLimits, read_video
from images_and_videos import get_grey, image_file, quarters, video_file
from sounds import muxed


def read(file: bytes, max_frames: int = MAX_FRAMES) -> VideoPart:
    return read_video(file, VideoLimits(time.monotonic() + 60, max_frames), "p")


@pytest.mark.parametrize(
    ("codec", "container"),
    [
        ("libx264", "mp4"),
        ("libx265", "mp4"),
        ("mpeg4", "mov"),
        ("libx264", "matroska"),
        ("libvpx", "webm"),
        ("libvpx-vp9", "webm"),
        ("libsvtav1", "webm"),
    ],
)
def test_two_frames_a_second_evenly_from_first_to_last(codec: str, container: str) -> None:
    video = read(video_file(6, codec=codec, container=container))
    assert video.frames.shape == (12, 48, 64, 3)
    assert video.frames.dtype == np.uint8
    assert video.frames_per_s == pytest.approx(2.0, rel=0.02)
    places = np.linspace(0, 59, 12).round().astype(int)
    expected = [get_grey(place, 60) for place in places]
    found = video.frames.mean(axis=(1, 2, 3))
    np.testing.assert_allclose(found, expected, atol=4)


@pytest.mark.parametrize(
    ("seconds", "rate", "frames"), [(0.1, 10, 4), (0.3, 10, 4), (1, 10, 4), (3.2, 10, 6)]
)
def test_an_even_number_of_frames_and_at_least_four(seconds: float, rate: int, frames: int) -> None:
    video = read(video_file(seconds, rate))
    assert len(video.frames) == frames
    found = video.frames.mean(axis=(1, 2, 3))
    assert (np.diff(found) >= -3).all()
    if seconds >= 1:
        assert video.frames_per_s == pytest.approx(frames / seconds, rel=0.02)


def test_a_long_video_has_its_frames_further_apart() -> None:
    video = read(video_file(40, rate=2), max_frames=16)
    assert len(video.frames) == 16
    assert video.frames_per_s == pytest.approx(16 / 40, rel=0.02)
    found = video.frames.mean(axis=(1, 2, 3))
    assert found[0] == pytest.approx(get_grey(0, 80), abs=4)
    assert found[-1] == pytest.approx(get_grey(79, 80), abs=4)


def test_large_frames_are_scaled_down() -> None:
    video = read(video_file(2, rate=4, size=(1280, 720), pixels=quarters(720, 1280)))
    assert len(video.frames) == 4
    _, height, width, _ = video.frames.shape
    assert height * width == pytest.approx(768 * 28 * 28, rel=0.01)
    assert width / height == pytest.approx(16 / 9, rel=0.01)
    np.testing.assert_allclose(video.frames[0, 50, 50].astype(int), (255, 0, 0), atol=12)
    np.testing.assert_allclose(video.frames[-1, -50, -50].astype(int), 255, atol=12)


def turned(file: bytes) -> bytes:
    """The file as a phone writes it that was held upright: to be turned clockwise by 90 degrees."""
    header = file.index(b"tkhd") + 4
    unit, one = 0x10000, 0x40000000
    matrix = struct.pack(">9i", 0, unit, 0, -unit, 0, 0, 0, 0, one)
    return file[: header + 40] + matrix + file[header + 76 :]


def test_videos_are_turned_as_they_were_held() -> None:
    file = video_file(1, size=(64, 48), pixels=quarters(48, 64))
    expected = np.rot90(quarters(48, 64), -1)
    frames = read(turned(file)).frames
    assert frames.shape[1:] == (64, 48, 3)
    for y in (8, -9):
        for x in (8, -9):
            np.testing.assert_allclose(frames[0, y, x].astype(int), expected[y, x], atol=25)


def test_a_damaged_end_repeats_the_last_frame() -> None:
    whole = video_file(6, codec="libvpx", container="webm")
    video = read(whole[: len(whole) * 2 // 3])
    assert len(video.frames) % 2 == 0
    assert len(video.frames) >= 4


LONG = video_file(20 * 60, rate=1, size=(16, 16))
BOMBS = [
    (LONG, "1200 s long; up to 600 s are accepted"),
    (video_file(0.1, size=(4096, 4096), codec="mpeg4"), "frames of 4096 x 4096 pixels"),
]

READ = """
import resource, sys, time
from cantata.contract.data.errors import InvalidVideo
from cantata.media.video import VideoLimits, read_video

data = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_video(data, VideoLimits(time.monotonic() + 60), "p")
except InvalidVideo as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.parametrize(("file", "says"), BOMBS)
def test_bombs_take_little_memory(file: bytes, says: str) -> None:
    # The peak of a process that does nothing else.
    child = subprocess.run(
        [sys.executable, "-c", READ], input=file, capture_output=True, check=True
    )
    message, grown_mib = child.stdout.decode().splitlines()
    assert says in message
    assert int(grown_mib) < 32


def test_work_has_a_limit() -> None:
    with pytest.raises(InvalidVideo, match="takes too long"):
        read_video(video_file(1), VideoLimits(time.monotonic() - 1), "p")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (b"", "is not a readable video; valid: MP4, MOV, WebM, MKV"),
        (image_file(quarters(), "GIF"), "is not a readable video"),
        (b"#EXTM3U\nfile:///etc/passwd", "is not a readable video"),
        (muxed("mp4", "aac"), "contains no picture"),
        (muxed("webm", "libopus"), "contains no picture"),
        (video_file(1, codec="mjpeg", container="mov"), "has an unsupported codec"),
        (video_file(1)[:300], "cannot be decoded as video/mp4"),
    ],
)
def test_what_is_no_video(file: bytes, says: str) -> None:
    with pytest.raises(InvalidVideo, match=says) as error:
        read(file)
    assert error.value.param == "p"
