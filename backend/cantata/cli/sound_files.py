"""Sound files as commands write them: checked first, whole or not there, their faults explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
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
        form: its format, of `check_sound_file`.
        sample_rate: Hz.

    Raises:
        FileError: it cannot be written; says why.
    """
    with write_whole(out) as unfinished:
        with _explain(out, unfinished):
            file = FileSink(unfinished, form, sample_rate, channels, tags)
        with ExplainedSink(file, partial(_explain, out, unfinished)) as sink:
            yield sink


class ExplainedSink(Sink):
    """A sink whose faults are told as its own, and not as those of what is written meanwhile.
    `explain`: a context that tells them."""

    def __init__(self, sink: Sink, explain: Callable[[], AbstractContextManager[None]]) -> None:
        self._sink, self._explain = sink, explain

    def write(self, samples: Pcm) -> None:
        with self._explain():
            self._sink.write(samples)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._explain():
            self._sink.__exit__(kind, error, trace)


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
