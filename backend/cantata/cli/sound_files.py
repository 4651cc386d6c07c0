"""Sound files as commands write them: checked first, whole or not there, their faults explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import soundfile

from cantata.audio import sinks
from cantata.audio.sinks import FileSink, Pcm, Sink, SinkError, Tags
from cantata.cli.files import FileError, WrongCall, check_place, explain_write_errors
from cantata.utils.atomic_file import write_whole

_PROBE_BYTES = 1 << 16
"""More than a full disk may still have room for in the file's last block."""


def check_sound_file(path: Path, form: str | None = None) -> str:
    """Check an output file before the work is done, and find its format.

    Args:
        path: its name's ending is the format, if none is given.
        form: one of `audio.formats.FORMATS`; None: by the name.

    Raises:
        WrongCall: its name says no format, or a folder has it.
        FileError: its folder does not exist.
    """
    try:
        found = sinks.check_file(Path(path.name), form)
    except SinkError as error:
        raise WrongCall(error.message) from None
    check_place(path)
    return found


@contextmanager
def open_sound_file(
    out: Path, form: str, sample_rate: int, channels: int, tags: Tags
) -> Iterator[Sink]:
    """A sound file, which appears under its name once the block has ended well.

    Args:
        out: its name.
        form: its format, of `check_sound_file`.
        sample_rate: Hz.
        channels: of the samples.
        tags: names and values.

    Raises:
        FileError: it cannot be written; says why.
    """
    with write_whole(out) as unfinished:
        with _explain(out, unfinished):
            file = FileSink(unfinished, form, sample_rate, channels, tags)
        with _ExplainedSink(file, out, unfinished) as sink:
            yield sink


class _ExplainedSink(Sink):
    """A file whose faults name it, and not what is written meanwhile."""

    def __init__(self, file: Sink, out: Path, unfinished: Path) -> None:
        self._file, self._out, self._unfinished = file, out, unfinished

    def write(self, samples: Pcm) -> None:
        with _explain(self._out, self._unfinished):
            self._file.write(samples)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _explain(self._out, self._unfinished):
            self._file.__exit__(kind, error, trace)


@contextmanager
def _explain(out: Path, unfinished: Path) -> Iterator[None]:
    with explain_write_errors(out):
        try:
            yield
        except soundfile.LibsndfileError as error:
            # libsndfile says "System error."; writing without it says which one.
            with unfinished.open("ab") as file:
                file.write(bytes(_PROBE_BYTES))
            raise FileError(f"{out}: cannot be written ({error.error_string})") from error
