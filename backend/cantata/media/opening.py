"""Opens a file with the one reader of FFmpeg that it needs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import av

from cantata.contract.data.errors import InvalidMedia
from cantata.media.containers import Container


@contextmanager
def opened(
    data: bytes | BinaryIO,
    container: Container,
    decoders: Sequence[str],
    param: str,
    kind: type[InvalidMedia],
    valid: str,
) -> Iterator[av.container.InputContainer]:
    """Open a file for the block. Any error that FFmpeg raises inside is the client's file's fault.

    Args:
        data: the whole file, or one that is open for reading at its beginning.
        container: what its first bytes say it is.
        decoders: the only ones that FFmpeg may use.
        param: the field that it came in, for error messages, as the next two.
        kind: of the error.
        valid: what could be read.

    Raises:
        InvalidMedia: of `kind`: the file is damaged, or not what it says it is.
    """
    options = {"codec_whitelist": ",".join(decoders), "protocol_whitelist": ""}
    try:
        with av.open(
            io.BytesIO(data) if isinstance(data, bytes) else data,
            mode="r",
            format=container.demuxer,
            container_options=options,
            metadata_errors="ignore",
        ) as source:
            yield source
    except (av.FFmpegError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "not what it says it is"
        raise kind(
            f"{param} cannot be decoded as {container.media_type} ({reason}); valid: {valid}", param
        ) from error
