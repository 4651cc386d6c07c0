"""`gr.Blocks` that take no file but their own, and tell programs their mistakes in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from gradio import processing_utils
from gradio.context import LocalContext
from gradio.exceptions import InvalidPathError
from pydantic import ValidationError

_SHAPES = {
    "MultimodalData": (
        "A message is a text, or {'text': ..., 'files': [...]} with files from "
        "gradio_client.handle_file."
    ),
    "FileData": "A recording is a file: gradio_client.handle_file makes it of a path or a URL.",
}
"""What is expected instead of a value that is no such model."""


class PlainBlocks(gr.Blocks):  # type: ignore[misc]
    """What Gradio itself refuses is refused in plain words, and without a traceback in the server's
    log: it is the caller's mistake.

    Args:
        folder: of files that are made or uploaded; calls are given no others.
        settings: of `gr.Blocks`.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder.resolve()
        super().__init__(**settings)

    async def preprocess_data(
        self, block_fn: Any, inputs: list[Any], state: Any, explicit_call: bool = False
    ) -> list[Any]:
        given = _put_in_messages(block_fn.inputs, inputs)
        try:
            return list(await super().preprocess_data(block_fn, given, state, explicit_call))
        except gr.Error as error:
            raise _build_error(error.message) from error
        except ValidationError as error:
            raise _build_error(_SHAPES.get(error.title, str(error))) from error
        except (ValueError, httpx.HTTPError) as error:  # a file that is not there, a field too few
            raise _build_error(str(error).partition("\n")[0]) from error


# WHY: a caller may send any path. Gradio checks it only in apps that it has launched itself, not in
# one that is mounted: it would copy any file of this machine to where the caller can fetch it.
# SCOPE: `PlainBlocks`; all other apps are checked as before. It can go when Gradio checks mounted
# apps against their own folder.
_check_as_gradio = processing_utils._check_allowed


def _check_file(path: str | Path, check_in_upload_folder: bool) -> None:
    blocks, file = LocalContext.blocks.get(None), Path(path).resolve()
    if not isinstance(blocks, PlainBlocks):
        _check_as_gradio(path, check_in_upload_folder)
    elif not file.is_relative_to(blocks.folder) or not file.is_file():
        raise InvalidPathError("A file was not uploaded, or is deleted by now: upload it first.")


processing_utils._check_allowed = _check_file


def _put_in_messages(blocks: list[Any], inputs: list[Any]) -> list[Any]:
    """A text, or nothing, where a message with files is expected, as that message."""
    given = list(inputs)
    for index, (block, value) in enumerate(zip(blocks, inputs, strict=False)):
        if isinstance(block, gr.MultimodalTextbox) and isinstance(value, str | None):
            given[index] = {"text": value or "", "files": []}
    return given


def _build_error(message: str) -> gr.Error:
    return gr.Error(message, print_exception=False)
