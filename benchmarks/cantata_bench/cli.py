"""`cantata bench`. Heavy imports stand inside the commands, so that help is instant."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cantata.contract.data.errors import CantataError, ConfigError
from cantata_bench.model_page.command import model_command

if TYPE_CHECKING:
    from cantata_bench.results import Run

app = typer.Typer(help="Measure a server, and plan past it.", invoke_without_command=True)
app.command("model")(model_command)

PERFORMANCE_MARKER = "figures: written by `cantata bench report --page`"
SCALING_MARKER = "figures: written by `cantata bench plan`"
_RECOGNISER = ("pocketsphinx", "jiwer")
_RESULT, _REPORT, _PICTURE = "bench.json", "bench.md", "bench.png"


class Transport(StrEnum):
    """How a server is asked."""

    WEBSOCKET = "websocket"
    HTTP = "http"
    BOTH = "both"


class Texts(StrEnum):
    """What is said."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"
    MIXED = "mixed"


@app.callback()
def bench(
    context: typer.Context,
    streams: Annotated[
        list[int], typer.Option(min=1, help="Streams of a closed loop. Repeatable.")
    ] = [1, 2, 4, 8, 16, 32],  # noqa: B006
    rate: Annotated[
        list[float],
        typer.Option(min=0, help="Requests per second, as they come; 0: no such load. Repeatable."),
    ] = [1.0, 4.0, 30.0],  # noqa: B006
    stampede: Annotated[
        bool, typer.Option(help="Three times the most streams within two seconds, too.")
    ] = True,
    transport: Annotated[Transport, typer.Option(help="How to ask.")] = Transport.BOTH,
    texts: Annotated[Texts, typer.Option(help="What to say.")] = Texts.MIXED,
    seconds: Annotated[float, typer.Option(min=1, help="Of each load, measured.")] = 20.0,
    warm_up: Annotated[float, typer.Option(min=0, help="Seconds before that.")] = 3.0,
    seed: Annotated[int, typer.Option(help="Of texts and arrivals.")] = 0,
    model: Annotated[
        str | None, typer.Option(help="Model's name or checkpoint folder; a name with --url.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A server that runs already, this one or another's.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="CANTATA_API_KEY", help="For --url.")
    ] = None,
    voice: Annotated[
        list[str] | None, typer.Option(help="For --url, dealt out to streams. Repeatable.")
    ] = None,
    honour_retry_after: Annotated[
        bool, typer.Option(help="Retry a rejected request after `retry-after`, or give up.")
    ] = True,
    floor: Annotated[bool, typer.Option(help="Measure the bare model, without a server.")] = True,
    batch_mode: Annotated[bool, typer.Option(help="Measure async_chunk: false too.")] = True,
    long_minutes: Annotated[float, typer.Option(min=0, help="Of one very long text.")] = 10.0,
    asr: Annotated[bool, typer.Option(help="Word error rate too (extra `bench`).")] = False,
    folder: Annotated[Path, typer.Option(help="Takes the results.")] = Path("artifacts/bench"),
) -> None:
    """Measure a server (started here, or --url): JSON, Markdown and a picture.

    Without options: about thirteen minutes.
    """
    if context.invoked_subcommand is not None:
        return
    from cantata_bench.measure import Plan, ladder, measure_elsewhere, measure_here
    from cantata_bench.measure import stampede as stampede_loads
    from cantata_bench.results import LoadSpec
    from cantata_bench.target import Target

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
            _require_recogniser()
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
    result: Annotated[Path, typer.Argument(exists=True, help="A run's JSON.")],
    page: Annotated[
        Path | None, typer.Option(help="Write it between this page's markers, with its picture.")
    ] = None,
) -> None:
    """Write a run's report again, or into a page."""
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
    result: Annotated[Path, typer.Argument(exists=True, help="A run's JSON.")],
    margin: Annotated[float, typer.Option(min=0, help="How far a ratio may be missed.")] = 0.25,
) -> None:
    """Exit code 1 if a ratio of the run is off its goal by more than a margin.

    What was disturbed is not measured: it is named, and neither met nor missed.
    """
    from cantata_bench.targets import goals

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
    result: Annotated[Path, typer.Argument(exists=True, help="A run's JSON.")],
) -> None:
    """Predict each load of a run from its floor, and show both."""
    from cantata_bench.simulator.check import check as predict
    from cantata_bench.simulator.check import check_table

    run = _read(result)
    try:
        typer.echo(check_table(predict(run)))
    except ConfigError as error:
        _fail(error.message)


@app.command()
def scale(
    system: Annotated[Path, typer.Argument(exists=True, help="A run's JSON, or a system's YAML.")],
    listeners: Annotated[list[int], typer.Argument(min=1, help="At a time.")],
    servers: Annotated[int | None, typer.Option(min=1, help="Instead of the system's own.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Simulated, after 10 of warm-up.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the texts' order.")] = 0,
) -> None:
    """Simulate this many live listeners."""
    from cantata_bench.simulator.scaling import scale as predict
    from cantata_bench.simulator.scaling import scale_table
    from cantata_bench.simulator.system import load_system, system_of

    try:
        found = system_of(_read(system)) if system.suffix == ".json" else load_system(system)
    except ConfigError as error:
        _fail(error.message)
    if servers is not None:
        found = found.model_copy(update={"servers": servers})
    typer.echo(scale_table(predict(found, listeners, seconds, seed)))


@app.command()
def startup(
    folder: Annotated[Path, typer.Option(help="Takes the log.")] = Path("artifacts/bench"),
) -> None:
    """Measure how long saying a sentence, serving and a stage's restart take to begin."""
    from cantata_bench.startup import measure_startup, startup_table

    typer.echo(startup_table(measure_startup(folder)))


@app.command()
def realtime(
    sessions: Annotated[
        list[int], typer.Option(min=1, help="Conversations at a time. Repeatable.")
    ] = [1, 8],  # noqa: B006
    turns: Annotated[int, typer.Option(min=1, help="Of each conversation.")] = 5,
    model: Annotated[str | None, typer.Option(help="Model's name or checkpoint folder.")] = None,
    folder: Annotated[Path, typer.Option(help="Takes the log.")] = Path("artifacts/bench"),
) -> None:
    """Measure spoken conversations: how soon an answer sounds, and stops when interrupted."""
    import asyncio

    from cantata_bench.realtime import measure_realtime, realtime_table

    typer.echo(realtime_table(asyncio.run(measure_realtime(model, sessions, turns, folder))))


@app.command()
def images(
    model: Annotated[
        str | None, typer.Option(help="Name or checkpoint folder. Default: the embedded one.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Of everything.")] = 5,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Only simulate the published size of Qwen-Image.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Takes the logs.")] = Path("artifacts/bench"),
) -> None:
    """Measure pictures beside diffusers' own pipeline (extra `diffusers`), in turns."""
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
        list[int], typer.Option(min=1, help="Listeners of each load, at a time. Repeatable.")
    ] = [1, 8, 16],  # noqa: B006
    seconds: Annotated[float, typer.Option(min=1, help="Of each load, measured.")] = 10.0,
    served: Annotated[bool, typer.Option(help="Serve a model both ways, too.")] = True,
    model: Annotated[str | None, typer.Option(help="Model's name or checkpoint folder.")] = None,
    folder: Annotated[Path, typer.Option(help="Takes the logs.")] = Path("artifacts/bench"),
) -> None:
    """Measure what a link, a stage's edge over one, and an edge cost beside one machine's own."""
    from cantata_bench.cluster.connectors import PERIOD_S, Pace, measure_connectors
    from cantata_bench.cluster.served import measure_served
    from cantata_bench.cluster.stage_edges import measure_edges
    from cantata_bench.cluster.tables import connectors_table, edges_table, served_table

    pace = Pace(max(streams), max(1, round(seconds / PERIOD_S)))
    typer.echo(connectors_table(measure_connectors(pace)))
    typer.echo(edges_table(measure_edges(pace)))
    if not served:
        return
    try:
        found = measure_served(model, streams, seconds, folder, typer.echo)
    except (CantataError, RuntimeError) as error:
        _fail(str(error))
    typer.echo(served_table(found))


@app.command("plan")
def plan_command(
    page: Annotated[Path, typer.Argument(exists=True, help="Such as docs/scaling.md.")],
    result: Annotated[
        Path | None, typer.Option(exists=True, help="A run's JSON: this machine, as measured.")
    ] = None,
) -> None:
    """Simulate larger machines, and write what they would serve between a page's markers."""
    from cantata_bench.simulator.plan import plan_text
    from cantata_bench.tables import put_between_markers

    try:
        text = plan_text(None if result is None else _read(result))
        put_between_markers(page, SCALING_MARKER, text)
    except (ConfigError, ValueError) as error:
        _fail(str(error))


def _require_recogniser() -> None:
    """Before anything is measured.

    Raises:
        ConfigError: a package is missing; says how to get it.
    """
    missing = [name for name in _RECOGNISER if find_spec(name) is None]
    if missing:
        raise ConfigError(f"--asr needs {', '.join(missing)}: pip install 'cantata[bench]'")


def _keep(run: Run, folder: Path) -> None:
    (folder / _RESULT).write_text(run.model_dump_json(indent=1), encoding="utf-8")


def _write(run: Run, folder: Path) -> None:
    from cantata_bench.plots import can_plot, plot
    from cantata_bench.tables import report

    (folder / _REPORT).write_text(report(run), encoding="utf-8")
    typer.echo(report(run))
    written = [_RESULT, _REPORT]
    if can_plot():
        plot(run, folder / _PICTURE)
        written.append(_PICTURE)
    typer.echo(f"written to {folder}: {', '.join(written)}")


def _read(path: Path) -> Run:
    from pydantic import ValidationError

    from cantata_bench.results import Run

    try:
        return Run.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        _fail(f"{path}: not a run's JSON: {error}")


def _fail(message: str) -> NoReturn:
    typer.secho(f"cantata bench: {message}", fg=typer.colors.RED, err=True)
    raise typer.Exit(1)
