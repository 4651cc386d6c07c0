"""`cantata draw`: a prompt into a file.

The picture comes from a server that was named, or from the model loaded here, in stage processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cantata.cli.files import (
    STANDARD_STREAM,
    check_ending,
    check_output_is_piped,
    check_place,
    explain_write_errors,
    read_file,
    write_standard_output,
)
from cantata.cli.server_address import ask_server
from cantata.client.pictures import PictureFile, Step, draw_picture
from cantata.contract.data import chunks
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.utils.atomic_file import write_whole

if TYPE_CHECKING:
    from cantata.api.images.validation import ValidatedImage
    from cantata.pipeline.service import PipelineService

KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}
"""Formats by the file's name."""


@dataclass(frozen=True, slots=True)
class DrawArguments:
    """The command's options; None is what the model does by itself."""

    prompt: str
    out: Path
    """`-`: standard output, as PNG."""
    edit: tuple[Path, ...]
    """Pictures to edit; empty: one is made from words alone."""
    size: str | None
    """`WIDTHxHEIGHT` in pixels."""
    seed: int | None
    steps: int | None
    negative: str | None
    guidance: float | None
    model: str | None
    server: str | None

    @property
    def options(self) -> dict[str, Any]:
        """The options as fields of the api."""
        named = {
            "prompt": self.prompt,
            "size": self.size,
            "seed": self.seed,
            "num_inference_steps": self.steps,
            "negative_prompt": self.negative,
            "true_cfg_scale": self.guidance,
            "output_format": KINDS.get(self.out.suffix.lower(), "png"),
        }
        return {name: value for name, value in named.items() if value is not None}


async def draw(options: DrawArguments, console: Console) -> None:
    """Draw, and tell on the console how far it is. Raises CantataError: the request cannot be
    served; raised before a model is loaded where possible."""
    check_file(options.out)
    pictures = [read_file(path) for path in options.edit]
    asked_at = time.monotonic()
    events = _from_server(options, pictures) if options.server else _from_stages(options, pictures)
    async with aclosing(events):
        picture = await _follow(events, console)
    _write(picture.data, options.out)
    console.print(
        f"{picture.size}{_format_place(options.out)} after {time.monotonic() - asked_at:.1f} s, "
        f"seed {picture.seed}",
        highlight=False,
    )


def _format_place(out: Path) -> str:
    return "" if out == STANDARD_STREAM else f" in {out}"


def _write(data: bytes, out: Path) -> None:
    if out == STANDARD_STREAM:
        with write_standard_output():
            sys.stdout.buffer.write(data)
        return
    with explain_write_errors(out), write_whole(out) as unfinished:
        unfinished.write_bytes(data)


def check_file(path: Path) -> None:
    """Check an output file before the work is done.

    Raises:
        WrongCall: no such format, or a picture would end on the terminal.
        FileError: no such folder.
    """
    if path == STANDARD_STREAM:
        check_output_is_piped()
        return
    check_ending(path, KINDS)
    check_place(path)


async def _follow(
    events: AsyncGenerator[Step | PictureFile, None], console: Console
) -> PictureFile:
    """The picture; meanwhile a bar."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("waiting", total=None)
        async for event in events:
            if isinstance(event, PictureFile):
                return event
            progress.update(task, description="drawing", completed=event.step, total=event.steps)
    raise RequestFailed("the drawing ended without a picture")


async def _from_server(
    options: DrawArguments, pictures: list[bytes]
) -> AsyncGenerator[Step | PictureFile, None]:
    from cantata.client import KEY_VARIABLE

    server, named = options.server or "", {} if options.model is None else {"model": options.model}
    fields = {**options.options, **named}
    with ask_server(server):
        async with aclosing(
            draw_picture(server, fields, pictures, os.environ.get(KEY_VARIABLE))
        ) as events:
            async for event in events:
                yield event


async def _from_stages(
    options: DrawArguments, pictures: list[bytes]
) -> AsyncGenerator[Step | PictureFile, None]:
    """Load the model in stage processes, and end them afterwards."""
    from cantata.pipeline.plan import plan_service
    from cantata.pipeline.service import create_service

    service = create_service(plan_service(options.model or get_embedded_image_model()))
    checked = _check_order(options, service, pictures)
    try:
        await service.start()
        async with aclosing(_draw_order(checked)) as events:
            async for event in events:
                yield event
    finally:
        await service.stop()


def get_embedded_image_model() -> str:
    """The model that draws whose weights ship with it; the first by name. Raises ConfigError: there
    is none."""
    from cantata.config.plugins import load_plugins

    for name, plugin in sorted(load_plugins().items()):
        if plugin.embedded_checkpoint and plugin.load_image_builder:
            return name
    raise ConfigError(
        "no model that draws ships with this installation; give one with --model, or --server"
    )


def _check_order(
    options: DrawArguments, service: PipelineService, pictures: list[bytes]
) -> ValidatedImage:
    """Check a request by the rules of the api."""
    from pydantic import ValidationError

    from cantata.api.errors import explain_validation
    from cantata.api.images.body import ImageOptions
    from cantata.api.images.validation import SentPicture, check_picture_options

    if not service.image_models:
        raise ConfigError(f"the model {options.model!r} does not draw")
    model = service.get_image_model(None)
    sent = [SentPicture(data, str(path)) for path, data in zip(options.edit, pictures, strict=True)]
    try:
        return check_picture_options(model, ImageOptions.model_validate(options.options), sent)
    except ValidationError as error:
        raise explain_validation(error.errors()) from None


async def _draw_order(checked: ValidatedImage) -> AsyncGenerator[Step | PictureFile, None]:
    from cantata.media.images import read_image, write_picture
    from cantata.media.request_media import MediaLimits

    limit = MediaLimits().max_image_pixels
    references = [read_image(sent.data, limit, sent.param) for sent in checked.sent]
    (request,) = checked.requests(references, time.monotonic())
    async with checked.model.run(request) as drawing:
        async for event in drawing:
            if isinstance(event, chunks.Image):
                data = await asyncio.to_thread(write_picture, event.pixels, checked.output)
                yield PictureFile(data, f"{drawing.width}x{drawing.height}", request.seed)
            elif isinstance(event, chunks.Progress):
                yield Step(event.step, event.steps)
