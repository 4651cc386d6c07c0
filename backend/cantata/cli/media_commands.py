"""The commands that make something: speech, a picture, a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cantata.cli.runner import fail, report_errors, run, run_job, set_up_logging
from cantata.contract.data.errors import CantataError
from cantata.serving.options import TranscriptForm

OUTPUT, VOICE, MODEL, PICTURE = "Output", "Voice", "Model", "Picture"
"""Groups of options in the help."""


class SoundForm(StrEnum):
    """What `cantata say --format` writes."""

    WAV = "wav"
    FLAC = "flac"
    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    PCM = "pcm"


def _complete_models(incomplete: str) -> Iterator[str]:
    from cantata.config.plugins import load_plugins

    with suppress(CantataError):
        yield from (name for name in load_plugins() if name.startswith(incomplete))


def _complete_voices(incomplete: str) -> Iterator[str]:
    from cantata.cli.catalogue import list_local_voices

    with suppress(CantataError):
        voices = list_local_voices(None)
        yield from (one.id for one in voices if one.id.startswith(incomplete))


ModelOrFolder = Annotated[
    str | None,
    typer.Option(
        help="Model's name or checkpoint folder (with --server, a name).",
        rich_help_panel=MODEL,
        autocompletion=_complete_models,
    ),
]
ServerUrl = Annotated[
    str | None,
    typer.Option(
        help="Ask the server at this URL instead of loading the model.", rich_help_panel=MODEL
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="No progress and no summary.", rich_help_panel=OUTPUT),
]


VoiceName = Annotated[
    str | None,
    typer.Option(
        help="Name of the voice. Default: the model's first.",
        rich_help_panel=VOICE,
        autocompletion=_complete_voices,
    ),
]
Speed = Annotated[
    float,
    typer.Option(
        min=0.25,
        max=4.0,
        help="Speaking rate; 1 is the voice's own.",
        rich_help_panel=VOICE,
    ),
]
Instructions = Annotated[
    str | None,
    typer.Option(
        help="How to speak, in words, for models that follow them.", rich_help_panel=VOICE
    ),
]
RefAudio = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Recording of the speaker to follow, 3 to 15 s.",
        rich_help_panel=VOICE,
    ),
]
RefText = Annotated[
    str | None,
    typer.Option(help="What is said in --ref-audio.", rich_help_panel=VOICE),
]

InputDevice = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Microphone, by a part of its name. Default: the system's."),
]


def say(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="The words to speak, or one text file (.md, .txt, .html). - or nothing reads "
            "standard input."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", help="Speak a text file; - is standard input."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Write a sound file instead of playing; - is standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    form: Annotated[
        SoundForm | None,
        typer.Option(
            "--format",
            help="Default: by --out's name; wav on standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Bare 16-bit samples on standard output: -o - --format pcm.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    srt: Annotated[
        bool,
        typer.Option(
            "--srt",
            help="Also write subtitles beside the sound file, as .srt.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    timestamps: Annotated[
        Path | None,
        typer.Option(
            help="Write the words' times to this .json, .srt or .vtt file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: Quiet = False,
    voice: VoiceName = None,
    speed: Speed = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The same seed gives the same sound.", rich_help_panel=VOICE),
    ] = None,
    instructions: Instructions = None,
    ref_audio: RefAudio = None,
    ref_text: RefText = None,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Speak a text on the sound device or into a file."""
    from rich.console import Console

    from cantata.cli.files import STANDARD_STREAM
    from cantata.cli.say import say as say_text
    from cantata.cli.say_options import SayArguments, read_text

    if raw:
        if out not in (None, STANDARD_STREAM) or form not in (None, SoundForm.PCM):
            fail("--raw is -o - --format pcm; leave out --out and --format", code=2)
        out, form = STANDARD_STREAM, SoundForm.PCM
    if form is not None and out is None:
        fail("--format needs a file with -o", code=2)
    if ref_text is not None and ref_audio is None:
        fail("--ref-text is the transcript of --ref-audio; give both", code=2)
    times = _list_timestamp_files(timestamps, srt, out)
    with report_errors():
        read = read_text(text or [], file)
    set_up_logging()
    options = SayArguments(
        text=read,
        out=out,
        form=form.value if form else None,
        timestamps=times,
        voice=voice,
        speed=speed,
        seed=seed,
        instructions=instructions,
        ref_audio=ref_audio,
        ref_text=ref_text,
        model=model,
        server=server,
    )
    run_job(say_text(options, Console(stderr=True, quiet=quiet)))


def _list_timestamp_files(timestamps: Path | None, srt: bool, out: Path | None) -> tuple[Path, ...]:
    from cantata.cli.files import STANDARD_STREAM

    files = [] if timestamps is None else [timestamps]
    if srt:
        if out is None or out == STANDARD_STREAM:
            fail("--srt needs a sound file with -o, beside which it is written", code=2)
        files.append(out.with_suffix(".srt"))
    return tuple(files)


def draw(
    prompt: Annotated[list[str], typer.Argument(help="What the picture should show.")],
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="File to write: .png, .jpg, .jpeg or .webp; - is standard output, as PNG.",
            rich_help_panel=OUTPUT,
        ),
    ] = Path("picture.png"),
    quiet: Quiet = False,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTHxHEIGHT",
            help="Size in pixels. Default: the model's.",
            rich_help_panel=PICTURE,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The same seed gives the same picture.", rich_help_panel=PICTURE),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of denoising steps. Default: the model's.",
            rich_help_panel=PICTURE,
        ),
    ] = None,
    negative: Annotated[
        str | None,
        typer.Option(help="What the picture should not show.", rich_help_panel=PICTURE),
    ] = None,
    guidance: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="How closely to follow the prompt; 1 turns guidance off.",
            rich_help_panel=PICTURE,
        ),
    ] = None,
    edit: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A picture to edit. Repeatable.",
            rich_help_panel=PICTURE,
        ),
    ] = None,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Draw a picture from a prompt, or edit one."""
    from rich.console import Console

    from cantata.cli.draw import DrawArguments
    from cantata.cli.draw import draw as draw_picture

    set_up_logging()
    words, pictures = " ".join(prompt), tuple(edit or ())
    options = DrawArguments(
        words, out, pictures, size, seed, steps, negative, guidance, model, server
    )
    run_job(draw_picture(options, Console(stderr=True, quiet=quiet)))


def transcribe(
    files: Annotated[
        list[Path] | None,
        typer.Argument(allow_dash=True, help="Recordings or folders of them; - is standard input."),
    ] = None,
    microphone: Annotated[
        bool, typer.Option("--microphone", help="Listen to the microphone until Ctrl-C.")
    ] = False,
    input_device: InputDevice = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File to write, or a folder. Default: standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    form: Annotated[
        TranscriptForm | None,
        typer.Option("--format", help="Default: by --out's name, or txt.", rich_help_panel=OUTPUT),
    ] = None,
    quiet: Quiet = False,
    language: Annotated[
        str | None, typer.Option(help="Code of what is spoken, such as en. Default: found out.")
    ] = None,
    prompt: Annotated[
        str, typer.Option(help="Names that may occur, or what was said before.")
    ] = "",
    translate: Annotated[bool, typer.Option("--translate", help="Write it in English.")] = False,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Write down what is said in recordings, or at the microphone."""
    listens = microphone or input_device is not None
    if listens == bool(files):
        fail("give either recordings or --microphone", code=2)
    if listens and server is not None:
        fail("--microphone is heard by a model here; --server takes recordings", code=2)
    from rich.console import Console

    from cantata.cli.transcribe import transcribe as transcribe_files
    from cantata.cli.transcribe_live import transcribe_microphone
    from cantata.cli.transcribe_options import TranscribeArguments

    set_up_logging()
    options = TranscribeArguments(
        tuple(files or ()),
        out,
        form.value if form else None,
        language,
        prompt,
        translate,
        model,
        server,
        input_device,
    )
    console = Console(stderr=True, quiet=quiet)
    if listens:
        run(transcribe_microphone(options, console))  # a signal ends it as it should end
    else:
        run_job(transcribe_files(options, console))
