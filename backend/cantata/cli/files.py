"""The files that commands read and write, and what to say of those that they cannot."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from cantata.contract.data.errors import CantataError

STANDARD_STREAM = Path("-")
"""Standard input or output."""


class FileError(CantataError):
    """A file cannot be read or written."""

    code = "file_error"


class WrongCall(CantataError):
    """The command cannot mean this, whatever is installed or served: its exit code is 2."""

    code = "wrong_call"


def read_file(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        WrongCall: there is none.
        FileError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WrongCall(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise WrongCall(f"{path} is a folder; name a file") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error


def check_ending(path: Path, valid: Collection[str]) -> None:
    """Check the name of an output file before the work is done. Raises WrongCall: its ending is not
    valid."""
    if path.suffix.lower() not in valid:
        raise WrongCall(f"{path}: the name must end with one of {', '.join(valid)}")


def check_place(path: Path) -> None:
    """Check where an output file goes before the work is done.

    Raises:
        WrongCall: a folder has its name.
        FileError: its folder does not exist.
    """
    if path.is_dir():
        raise WrongCall(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {path.parent}")


def check_output_is_piped() -> None:
    """Check that bytes on standard output do not end on a screen. Raises WrongCall: they would."""
    if sys.stdout.isatty():
        raise WrongCall("standard output is a terminal; redirect or pipe it")


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Errors of the block, which does nothing but write, become one that names the file. Raises
    FileError: it cannot be written; says why."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has heard enough: no fault of a file
    except OSError as error:
        place = "standard output" if path == STANDARD_STREAM else path
        raise FileError(f"{place}: cannot be written ({error.strerror})") from error


@contextmanager
def write_standard_output() -> Iterator[None]:
    """What the block prints has left when it ends; errors as of `explain_write_errors`."""
    with explain_write_errors(STANDARD_STREAM):
        yield
        sys.stdout.flush()


def describe_fault(error: OSError) -> str:
    """A fault of a file or of standard output on one line; empty: it is one of something else."""
    if isinstance(error, ConnectionError | TimeoutError) or error.strerror is None:
        return ""
    place = error.filename2 or error.filename
    return f"{place}: {error.strerror}" if place else error.strerror
