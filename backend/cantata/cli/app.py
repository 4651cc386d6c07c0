"""The command `cantata`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

import logging
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import uvloop

from cantata.contract.data.errors import CantataError
from cantata.serving.options import (
    AllowedHosts,
    AllowedOrigins,
    AllowRefUrls,
    ApiKeyFile,
    ChatUrl,
    ClusterKeyFile,
    Deployments,
    DrainTimeout,
    Dtype,
    Form,
    LogFormats,
    LogLevel,
    LogLevels,
    ModelAliases,
    Models,
    MostPerKey,
    NoAuth,
    PrivateLists,
    RayCluster,
    RefUrlPorts,
    ReplicaAddresses,
    TranscriptForm,
    TranscriptionUrl,
    VoicesFolder,
    VoicesUrl,
    WyomingPort,
)
from cantata.utils.logs import LogFormat, configure_logging

if TYPE_CHECKING:
    from cantata.config import Dtype as NumberFormat

app = typer.Typer(
    help="Cantata: a streaming server of speech, answers and pictures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ModelOrFolder = Annotated[
    str | None, typer.Option(help="Model's name or checkpoint folder (with --server, a name).")
]
ServerUrl = Annotated[
    str | None, typer.Option(help="Ask the server at this URL instead of loading the model.")
]

COMMANDS_GROUP = "cantata.commands"
"""Entry points of other packages' commands: Typer apps, light to import."""


def main() -> None:
    """Entry point."""
    for command in entry_points(group=COMMANDS_GROUP):
        app.add_typer(command.load(), name=command.name)
    try:
        app()
    except SystemExit as ending:
        if "cantata.pipeline.local" in sys.modules and isinstance(ending.code, int):
            # Tearing down torch's libraries takes as long as a short sentence, without any benefit.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ending.code)
        raise


@app.command()
def say(
    text: Annotated[
        str | None, typer.Argument(help="The text to speak; - reads standard input.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-f", "--file", exists=True, dir_okay=False, allow_dash=True, help="Speak a text file."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write a sound file instead of playing it.")
    ] = None,
    voice: Annotated[
        str | None, typer.Option(help="Name of the voice. Default: the model's first.")
    ] = None,
    timestamps: Annotated[
        Path | None, typer.Option(help="Write the words' times to this .json, .srt or .vtt file.")
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.25, max=4.0, help="Speaking rate; 1 is the voice's own.")
    ] = 1.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same sound.")
    ] = None,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Speak a text on the sound device or into a file."""
    from rich.console import Console

    from cantata.cli.say import SayArguments
    from cantata.cli.say import say as say_text

    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    options = SayArguments(_read(text, file), out, timestamps, voice, speed, seed, model, server)
    _run(say_text(options, Console(stderr=True)))


@app.command()
def draw(
    prompt: Annotated[str, typer.Argument(help="What the picture should show.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="File to write: .png, .jpg, .jpeg or .webp.")
    ] = Path("picture.png"),
    size: Annotated[
        str | None,
        typer.Option(metavar="WIDTHxHEIGHT", help="Size in pixels. Default: the model's."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same picture.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of denoising steps. Default: the model's.")
    ] = None,
    negative: Annotated[str | None, typer.Option(help="What the picture should not show.")] = None,
    guidance: Annotated[
        float | None,
        typer.Option(min=1, help="How closely to follow the prompt; 1 turns guidance off."),
    ] = None,
    edit: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="A picture to edit. Repeatable."),
    ] = None,
    model: ModelOrFolder = None,
    server: ServerUrl = None,
) -> None:
    """Draw a picture from a prompt, or edit one."""
    from rich.console import Console

    from cantata.cli.draw import DrawArguments
    from cantata.cli.draw import draw as draw_picture

    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    options = DrawArguments(
        prompt, out, tuple(edit or ()), size, seed, steps, negative, guidance, model, server
    )
    _run(draw_picture(options, Console(stderr=True)))


@app.command()
def transcribe(
    files: Annotated[
        list[Path] | None,
        typer.Argument(allow_dash=True, help="Recordings or folders of them; - is standard input."),
    ] = None,
    microphone: Annotated[
        bool, typer.Option("--microphone", help="Listen to the microphone until Ctrl-C.")
    ] = False,
    input_device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Microphone, by a part of its name. Default: the system's."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="File to write, or a folder. Default: standard output."),
    ] = None,
    form: Annotated[
        TranscriptForm | None, typer.Option("--format", help="Default: by --out's name, or txt.")
    ] = None,
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
        _fail("give either recordings or --microphone", code=2)
    if listens and server is not None:
        _fail("--microphone is heard by a model here; --server takes recordings", code=2)
    from rich.console import Console

    from cantata.cli.transcribe import transcribe as transcribe_files
    from cantata.cli.transcribe_live import transcribe_microphone
    from cantata.cli.transcribe_options import TranscribeArguments

    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
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
    run = transcribe_microphone if listens else transcribe_files
    _run(run(options, Console(stderr=True)))


def _read(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        _fail("give either a text to speak or a file with -f", code=2)
    if text == "-" or file == Path("-"):
        read = sys.stdin.read()
    elif file is not None:
        try:
            read = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            _fail(f"{file}: not a text file in UTF-8 ({error})")
    else:
        read = text or ""
    if not read.strip():
        _fail("there is nothing to say", code=2)
    return read


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    model: Models = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Number format of the weights; overrides the deployment.")
    ] = None,
    deploy: Deployments = None,
    wyoming_port: WyomingPort = None,
    api_key_file: ApiKeyFile = None,
    no_auth: NoAuth = False,
    private_lists: PrivateLists = False,
    allow_origin: AllowedOrigins = None,
    allow_host: AllowedHosts = None,
    alias: ModelAliases = None,
    max_concurrent_per_key: MostPerKey = None,
    voices_dir: VoicesFolder = None,
    voices_url: VoicesUrl = None,
    allow_ref_urls: AllowRefUrls = False,
    ref_url_port: RefUrlPorts = None,
    chat_url: ChatUrl = None,
    chat_model: Annotated[str | None, typer.Option(help="Model to name to --chat-url.")] = None,
    transcription_url: TranscriptionUrl = None,
    transcription_model: Annotated[
        str | None, typer.Option(help="Model to name to --transcription-url.")
    ] = None,
    replica: ReplicaAddresses = None,
    cluster: RayCluster = None,
    cluster_key_file: ClusterKeyFile = None,
    share_port: Annotated[
        bool, typer.Option("--share-port", help="Let other servers listen on the same port.")
    ] = False,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Serve models over HTTP and WebSocket until interrupted."""
    if not replica:
        from cantata.ipc import fork_server

        fork_server.begin()  # it imports torch while this process finds out what is to be served
    from rich.console import Console

    _configure_logging(log_level, log_format)
    from cantata.api.server import server_config
    from cantata.serving import server

    options = server_config.ServerOptions(
        api_keys=os.environ.get(server_config.KEYS_VARIABLE, ""),
        api_key_file=api_key_file,
        no_auth=no_auth,
        private_lists=private_lists,
        allow_origins=tuple(allow_origin or ()),
        allow_hosts=tuple(allow_host or ()),
        aliases=tuple(alias or ()),
        max_concurrent_per_key=max_concurrent_per_key,
        voices_dir=voices_dir,
        voices_url=voices_url,
        allow_ref_urls=allow_ref_urls,
        ref_url_ports=tuple(ref_url_port or ()),
        drain_timeout_s=drain_timeout,
        chat=server_config.chat_endpoint(chat_url, chat_model),
        transcription=server_config.transcription_endpoint(transcription_url, transcription_model),
    )
    number_format: NumberFormat | None = dtype.value if dtype else None
    listening = server.Listening(host, port, wyoming_port, shared=share_port)
    source: server.Source
    if replica:
        if model or deploy or dtype or cluster:
            _fail("--replica excludes --model, --deploy, --dtype and --cluster", code=2)
        source = server.ModelsOnReplicas(replica, cluster_key_file)
    elif cluster:
        from cantata.deploying.ray_discovery import ModelsOnRay

        source = ModelsOnRay(cluster, model or [], deploy or [], number_format)
    else:
        source = server.ModelsHere(model or [], deploy or [], number_format, cluster_key_file)
    _run(server.serve(listening, source, options, log_format, Console()))


@app.command()
def replica(
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address for edges to reach; port 0: a free one."),
    ] = "127.0.0.1:8100",
    model: Models = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Number format of the weights; overrides the deployment.")
    ] = None,
    deploy: Deployments = None,
    cluster_key_file: ClusterKeyFile = None,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Run models for servers on other machines, which connect with `cantata serve --replica`."""
    _configure_logging(log_level, log_format)
    from cantata.serving.replica import ReplicaOptions, run_replica

    number_format: NumberFormat | None = dtype.value if dtype else None
    options = ReplicaOptions(
        listen,
        tuple(model or ()),
        tuple(deploy or ()),
        number_format,
        cluster_key_file,
        drain_timeout,
        log_format,
        with_recognizer=True,
    )
    _run(run_replica(options, print))


@app.command("stage-host")
def stage_host(
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address for servers to reach; port 0: a free one."),
    ] = "127.0.0.1:8200",
    cluster_key_file: ClusterKeyFile = None,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Run stages for servers and replicas on other machines whose deployments name this host."""
    _configure_logging(log_level, log_format)
    from cantata.serving.stage_host import StageHostOptions, run_stage_host

    options = StageHostOptions(listen, cluster_key_file, drain_timeout, log_format)
    _run(run_stage_host(options, print))


@app.command()
def deploy(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Deployment files with a `cluster` section, in the order of --model.",
        ),
    ] = None,
    model: Models = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Number format of the weights; overrides the deployment.")
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Serve without API keys.")] = False,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File on the edges' machines with one API key per line; or set CANTATA_API_KEYS "
            "there."
        ),
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--print", help="Print what would be submitted, and stop.")
    ] = None,
    image: Annotated[
        str, typer.Option(help="Container image with Ray, for --print kubernetes.")
    ] = "cantata:cpu",
) -> None:
    """Run models and edges on a Ray cluster, or upgrade those that run there."""
    _configure_logging(LogLevel.WARNING, LogFormat.TEXT)
    from cantata.deploying import deploy as deploying

    number_format: NumberFormat | None = dtype.value if dtype else None
    options = deploying.DeployOptions(
        tuple(files or ()), tuple(model or ()), number_format, no_auth, api_key_file
    )
    _run(deploying.run(options, form, image, print))


@app.command()
def doctor(
    model: Annotated[
        str | None,
        typer.Option(help="Also check this model's files and its decoder's memory."),
    ] = None,
    deploy: Annotated[
        Path | None, typer.Option(help="Deployment file for --model. Default: the model's own.")
    ] = None,
) -> None:
    """Check this installation. The exit code is 1 if something must be fixed."""
    from rich.console import Console

    from cantata.cli.doctor import render, run_checks

    checks = run_checks()
    if model is not None:
        from cantata.cli.doctor_model import check_model

        checks += check_model(model, deploy)
    Console().print(render(checks))
    if any(check.failed for check in checks):
        raise typer.Exit(1)


def _run(command: Any) -> None:
    """Run a command's coroutine; its expected errors become one line."""
    try:
        uvloop.run(command)
    except CantataError as error:
        _fail(error.message)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.secho(f"cantata: {message}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


def _configure_logging(level: LogLevel, log_format: LogFormat) -> None:
    configure_logging(logging.getLevelNamesMapping()[level.name], log_format, "cantata")
    # These log whole addresses and headers, which may contain keys.
    for chatty in ("httpx", "httpcore", "websockets", "python_multipart"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
