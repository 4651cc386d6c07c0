"""`cantata bench`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cantata.contract.data.errors import CantataError, ConfigError
from cantata_bench.load_options import (
    ApiKey,
    Asr,
    Baseline,
    BatchMode,
    HonourRetryAfter,
    LongMinutes,
    MeasuredModel,
    Rates,
    Seconds,
    Seed,
    Stampede,
    Streams,
    TextLengths,
    Texts,
    Transport,
    Transports,
    Url,
    Voices,
    WarmUp,
)
from cantata_bench.model_commands import (
    model_command,
    peers_command,
    transcription_command,
    uploads_command,
    voices_command,
)

if TYPE_CHECKING:
    from cantata_bench.results import BenchRun

app = typer.Typer(invoke_without_command=True)
app.command("model")(model_command)
app.command("peers")(peers_command)
app.command("transcription")(transcription_command)
app.command("uploads")(uploads_command)
app.command("voices")(voices_command)

PERFORMANCE_MARKER = "figures: written by `cantata bench report --page`"
INTERRUPTIONS_MARKER = "figures: written by `cantata bench interruptions --cases unseen --page`"
SCALING_MARKER = "figures: written by `cantata bench plan`"
_RECOGNIZER = ("pocketsphinx", "jiwer")
_RESULT, _REPORT, _PICTURE = "bench.json", "bench.md", "bench.png"


@app.callback()
def bench(
    context: typer.Context,
    streams: Streams = [1, 2, 4, 8, 16, 32],  # noqa: B006
    rate: Rates = [1.0, 4.0, 30.0],  # noqa: B006
    stampede: Stampede = True,
    transport: Transports = Transport.BOTH,
    texts: TextLengths = Texts.MIXED,
    seconds: Seconds = 20.0,
    warm_up: WarmUp = 3.0,
    seed: Seed = 0,
    model: MeasuredModel = None,
    url: Url = None,
    api_key: ApiKey = None,
    voice: Voices = None,
    honour_retry_after: HonourRetryAfter = True,
    floor: Baseline = True,
    batch_mode: BatchMode = True,
    long_minutes: LongMinutes = 10.0,
    asr: Asr = False,
    folder: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("artifacts/bench"),
) -> None:
    """Measure a server, and simulate larger ones.

    Starts the server on this machine, unless --url names one. Writes JSON, a Markdown report and a
    plot. Takes about thirteen minutes without options.
    """
    from cantata.cli.runner import exit_on_signals

    context.with_resource(exit_on_signals())  # or the servers of a stopped run would go on
    if context.invoked_subcommand is not None:
        return
    from cantata_bench.client import Target
    from cantata_bench.measure import Plan, ladder, measure_elsewhere, measure_here
    from cantata_bench.measure import stampede as stampede_loads
    from cantata_bench.results import LoadSpec

    base = LoadSpec(
        kind="closed",
        texts=texts.value,
        warm_up_s=warm_up,
        seconds=seconds,
        seed=seed,
        honour_retry_after=honour_retry_after,
    )
    both = transport is Transport.BOTH
    transports = ("websocket", "http") if both else (transport.value,)
    loads = ladder(streams, [r for r in rate if r], transports, base)
    if stampede:
        loads += stampede_loads(max(streams), base.model_copy(update={"transport": transports[0]}))
    sentences = base.model_copy(update={"streams": 1, "texts": Texts.MEDIUM.value})
    compared = (sentences,) if batch_mode and url is None else ()
    plan = Plan(
        loads=tuple(spec for spec in loads if spec not in compared),
        batch_loads=compared,
        floor_batches=tuple(streams) if floor else (),
        long_minutes=long_minutes,
        asr=asr,
        seed=seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if asr:
            _require_recognizer()
        if url is None:
            parts = measure_here(model, plan, folder, typer.echo)
        else:
            target = Target(url.rstrip("/"), api_key, model, tuple(voice or ()))
            parts = measure_elsewhere(target, plan, typer.echo)
        for run in parts:  # keep what has been measured, whatever happens to the rest
            _keep(run, folder)
    except (CantataError, RuntimeError, OSError) as error:
        _fail(str(error))
    _write(run, folder)


@app.command("report")
def report_command(
    result: Annotated[Path, typer.Argument(exists=True, help="bench.json of a run.")],
    page: Annotated[
        Path | None,
        typer.Option(help="Markdown page to update: its figures, and the plot beside it."),
    ] = None,
) -> None:
    """Write a run's report again, or put it into a page."""
    run = _read(result)
    if page is None:
        _write(run, result.parent)
        return
    from cantata_bench.plots import plot
    from cantata_bench.tables import put_between_markers, report

    picture = page.with_suffix(".png")
    plot(run, picture)
    try:
        text = f"![The figures below]({picture.name})\n\n{report(run)}"
        put_between_markers(page, PERFORMANCE_MARKER, text)
    except ValueError as error:
        _fail(str(error))


@app.command()
def gate(
    result: Annotated[Path, typer.Argument(exists=True, help="bench.json of a run.")],
    margin: Annotated[
        float, typer.Option(min=0, help="How far a ratio may miss its goal; 0.25 is 25%.")
    ] = 0.25,
) -> None:
    """Compare a run's ratios with their goals. The exit code is 1 if one is missed by too much.

    Ratios that other work on the machine disturbed are listed as not measured, and do not count.
    """
    from cantata_bench.goals import goals

    found = goals(_read(result))
    measured = [goal for goal in found if not goal.doubt]
    missed = [goal for goal in measured if not goal.met_within(margin)]
    for goal in missed:
        bound = "at least" if goal.at_least else "at most"
        typer.echo(f"{goal.name}: {goal.found:.3g}, wanted {bound} {goal.limit:g}", err=True)
    for goal in found:
        if goal.doubt:
            typer.echo(f"not measured: {goal.name} ({goal.doubt})")
    met = len(measured) - len(missed)
    not_measured = len(found) - len(measured)
    typer.echo(f"goals: {met} met, {len(missed)} missed, {not_measured} not measured")
    if missed:
        raise typer.Exit(1)


@app.command()
def check(
    result: Annotated[Path, typer.Argument(exists=True, help="bench.json of a run.")],
) -> None:
    """Check the simulator: predict each load of a run from the bare model's times."""
    from cantata_bench.simulator.check import check as predict
    from cantata_bench.simulator.check import check_table

    run = _read(result)
    try:
        typer.echo(check_table(predict(run)))
    except ConfigError as error:
        _fail(error.message)


@app.command()
def scale(
    system: Annotated[
        Path, typer.Argument(exists=True, help="bench.json of a run, or a system's YAML.")
    ],
    listeners: Annotated[
        list[int], typer.Argument(min=1, help="Numbers of simultaneous listeners to simulate.")
    ],
    servers: Annotated[
        int | None, typer.Option(min=1, help="Number of servers. Default: the system's own.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1, help="Seconds to simulate, after 10 s of warm-up.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Random seed for the order of the texts.")] = 0,
) -> None:
    """Simulate many live listeners on one or more servers."""
    from cantata_bench.simulator.plan import scale as predict
    from cantata_bench.simulator.plan import scale_table
    from cantata_bench.simulator.system import build_system, load_system

    try:
        found = build_system(_read(system)) if system.suffix == ".json" else load_system(system)
    except ConfigError as error:
        _fail(error.message)
    if servers is not None:
        found = found.model_copy(update={"servers": servers})
    typer.echo(scale_table(predict(found, listeners, seconds, seed)))


@app.command()
def startup(
    folder: Annotated[Path, typer.Option(help="Folder for the log.")] = Path("artifacts/bench"),
) -> None:
    """Measure start-up: `cantata say`, a server until it is ready, a stage's restart."""
    from cantata_bench.startup import measure_startup, startup_table

    typer.echo(startup_table(measure_startup(folder)))


@app.command()
def realtime(
    sessions: Annotated[
        list[int], typer.Option(min=1, help="Number of simultaneous conversations. Repeatable.")
    ] = [1, 8],  # noqa: B006
    turns: Annotated[int, typer.Option(min=1, help="Turns of each conversation.")] = 5,
    model: Annotated[str | None, typer.Option(help="Model's name or checkpoint folder.")] = None,
    answers: Annotated[
        str | None,
        typer.Option(help="Model that answers, served beside. Default: answers are ready."),
    ] = None,
    voice: Annotated[str, typer.Option(help="Voice that speaks to the server.")] = "heart",
    folder: Annotated[Path, typer.Option(help="Folder for the log.")] = Path("artifacts/bench"),
) -> None:
    """Measure spoken conversations: how soon answers begin and stop, what was understood."""
    import asyncio

    from cantata_bench.realtime import measure_realtime, realtime_table

    found = asyncio.run(measure_realtime(model, voice, sessions, turns, folder, answers))
    typer.echo(realtime_table(found, ready=answers is None))


@app.command()
def composed(
    mind: Annotated[
        str, typer.Option(help="Text model that answers: a name or a folder.")
    ] = "smollm2",
    voice: Annotated[
        str | None, typer.Option(help="Model that speaks. Default: the first.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each question is asked.")] = 2,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions at a time, in the end.")] = 8,
    folder: Annotated[Path, typer.Option(help="Folder for the logs.")] = Path("artifacts/bench"),
) -> None:
    """Measure spoken answers of a text model: one server, and two that are joined by HTTP."""
    from cantata.config.plugins import list_embedded_models
    from cantata_bench.composed import composed_table, measure_composed

    speaks = voice or list_embedded_models()[0]
    try:
        found = measure_composed(mind, speaks, rounds, sessions, folder, typer.echo)
    except RuntimeError as error:
        _fail(str(error))
    typer.echo(composed_table(found))


@app.command()
def interruptions(
    cases: Annotated[
        str,
        typer.Option(
            help="tuned: what the server's rule was found on; held-out: other words, voices and "
            "noises; wide: again others, of three engines (needs espeak-ng), 60 of each kind; "
            "unseen: as wide, with others again."
        ),
    ] = "tuned",
    interrupt_on: Annotated[
        str, typer.Option(help="words, or speech: any speech stops the answer.")
    ] = "words",
    sessions: Annotated[int, typer.Option(min=1, help="Conversations at a time.")] = 2,
    page: Annotated[Path | None, typer.Option(help="Markdown page that gets the figures.")] = None,
    folder: Annotated[Path, typer.Option(help="Folder for the log.")] = Path("artifacts/bench"),
) -> None:
    """Measure what stops an answer: words of the user should, coughs and "mm-hm" should not."""
    import asyncio

    from cantata_bench.interruptions.cases import CASE_SETS
    from cantata_bench.interruptions.report import describe_outcomes
    from cantata_bench.interruptions.run import measure_interruptions
    from cantata_bench.tables import put_between_markers

    if cases not in CASE_SETS:
        _fail(f"--cases {cases}: there is no such set; valid: {', '.join(CASE_SETS)}")
    try:
        found = asyncio.run(measure_interruptions(CASE_SETS[cases], interrupt_on, sessions, folder))
    except (ConfigError, RuntimeError) as error:
        _fail(str(error))
    text = describe_outcomes(found)
    typer.echo(text)
    if page is not None:
        put_between_markers(page, INTERRUPTIONS_MARKER, f"{text}\n")


@app.command()
def images(
    model: Annotated[
        str | None,
        typer.Option(help="Model's name or checkpoint folder. Default: the embedded model."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often to repeat each measurement.")] = 5,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Simulate Qwen-Image at its published size instead."),
    ] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the logs.")] = Path("artifacts/bench"),
) -> None:
    """Measure pictures, in turns with diffusers' own pipeline (needs the extra `diffusers`)."""
    from cantata_bench.images.tables import images_table, simulated_table

    if simulate:
        typer.echo(simulated_table())
        return
    from cantata_bench.images.measure import measure_images

    try:
        typer.echo(images_table(measure_images(model, rounds, folder, typer.echo)))
    except (ConfigError, RuntimeError) as error:
        _fail(str(error))


@app.command()
def cluster(
    streams: Annotated[
        list[int], typer.Option(min=1, help="Load: this many simultaneous listeners. Repeatable.")
    ] = [1, 8, 16],  # noqa: B006
    seconds: Annotated[
        float, typer.Option(min=1, help="How long each turn of a load takes, in seconds.")
    ] = 10.0,
    served: Annotated[
        bool, typer.Option(help="Also serve a model with and without a replica.")
    ] = True,
    live: Annotated[
        bool, typer.Option(help="Listeners play a text to its end before they request the next.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="Model's name or checkpoint folder.")] = None,
    folder: Annotated[Path, typer.Option(help="Folder for the logs.")] = Path("artifacts/bench"),
) -> None:
    """Measure what several machines cost beside one: links, edges between stages, replicas."""
    from cantata_bench.cluster.connectors import PERIOD_S, CarriedLoad, measure_connectors
    from cantata_bench.cluster.served import measure_served
    from cantata_bench.cluster.stage_edges import measure_edges
    from cantata_bench.cluster.tables import connectors_table, edges_table, served_table

    pace = CarriedLoad(max(streams), max(1, round(seconds / PERIOD_S)))
    typer.echo(connectors_table(measure_connectors(pace)))
    typer.echo(edges_table(measure_edges(pace)))
    if not served:
        return
    try:
        found = measure_served(
            model, streams, seconds, folder, typer.echo, "live" if live else "closed"
        )
    except (CantataError, RuntimeError) as error:
        _fail(str(error))
    typer.echo(served_table(found))


@app.command("plan")
def plan_command(
    page: Annotated[
        Path, typer.Argument(exists=True, help="Markdown page to update, such as docs/scaling.md.")
    ],
    result: Annotated[
        Path | None,
        typer.Option(exists=True, help="bench.json of a run; adds this machine as measured."),
    ] = None,
) -> None:
    """Simulate larger machines, and write what they would serve into a page."""
    from cantata_bench.simulator.plan import plan_text
    from cantata_bench.tables import put_between_markers

    try:
        text = plan_text(None if result is None else _read(result))
        put_between_markers(page, SCALING_MARKER, text)
    except (ConfigError, ValueError) as error:
        _fail(str(error))


def _require_recognizer() -> None:
    """Check that the packages for `--asr` are installed, before anything is measured.

    Raises:
        ConfigError: a package is missing; says how to get it.
    """
    missing = [name for name in _RECOGNIZER if find_spec(name) is None]
    if missing:
        raise ConfigError(f"--asr needs {', '.join(missing)}: pip install 'cantata[bench]'")


def _keep(run: BenchRun, folder: Path) -> None:
    (folder / _RESULT).write_text(run.model_dump_json(indent=1), encoding="utf-8")


def _write(run: BenchRun, folder: Path) -> None:
    from cantata_bench.plots import can_plot, plot
    from cantata_bench.tables import report

    (folder / _REPORT).write_text(report(run), encoding="utf-8")
    typer.echo(report(run))
    written = [_RESULT, _REPORT]
    if can_plot():
        plot(run, folder / _PICTURE)
        written.append(_PICTURE)
    typer.echo(f"written to {folder}: {', '.join(written)}")


def _read(path: Path) -> BenchRun:
    from pydantic import ValidationError

    from cantata_bench.results import BenchRun

    try:
        return BenchRun.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        _fail(f"{path}: not the {_RESULT} of a run: {error}")


def _fail(message: str) -> NoReturn:
    typer.secho(f"cantata bench: {message}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1)
