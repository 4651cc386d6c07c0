"""Compare a model that answers, served, with its bare stages in one process.

    python -m cantata_bench.answer_baseline FOLDER [--requests 1 4] [--tokens 48] [--dtype float32]

Both get the same requests, so they make the same text and the same sound, even when they sample.
The checkpoint may have random weights if its speech ends by itself. Prints how much sound both
make, how long each stage's steps take, and how much memory its process needs.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx
import psutil

from cantata.config import load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.conversation import ChatBuilder, ParsedChatBuilder
from cantata_bench.answers import QUESTION, ROUNDS, TIMEOUT_S, Answered, ask
from cantata_bench.baseline import BarePipeline, StepTimes, load_stages
from cantata_bench.first_packet import serving
from cantata_bench.machine import in_own_process
from cantata_bench.noise_guard import observed
from cantata_bench.server import RunningServer
from cantata_bench.tables import ms, table

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Rate:
    """How much sound some requests at a time make."""

    throughput_x: float
    """Seconds of it per second, in the median round."""
    cpu_x: float
    """CPU seconds of all processes for each second of it, whatever else the machine does."""
    refused: int = 0


@dataclass(frozen=True, slots=True)
class StageSteps:
    """The steps of one stage while some requests are answered together, medians in seconds."""

    stage: str
    requests: int
    prompt_s: float | None
    """Median time of steps with the first output of a request; None: no such step ran alone."""
    step_s: float
    """Median time of all later steps."""
    steps: int


@dataclass(frozen=True, slots=True)
class BareAnswers:
    """What the stages do without a server."""

    rates: Mapping[int, Rate]
    """Rates by the number of simultaneous requests."""
    steps: tuple[StageSteps, ...]


def measure_bare(model: str, requests: Sequence[int], tokens: int, dtype: str) -> BareAnswers:
    """Answer in this process, one round after the other.

    Args:
        model: as `cantata serve --model` takes it.
        requests: at a time.
        tokens: of each answer, at most.
        dtype: of the AR stages.

    Raises:
        ConfigError: the model does not answer, or does not speak.
    """
    located = locate(model)
    load = located.plugin.load_chat_builder
    builder = None if load is None else load(located.checkpoint)
    if builder is None or isinstance(builder, ParsedChatBuilder) or not builder.voices:
        raise ConfigError(f"{located.plugin.name} does not speak answers")
    whole = load_deployment(located.plugin.deployment, located.pipeline).with_dtype(dtype)  # type: ignore[arg-type]
    slots = {"slots": max(requests)}
    stages = {name: stage.model_copy(update=slots) for name, stage in whole.stages.items()}
    bare = load_stages(located, whole.model_copy(update={"stages": stages}))
    try:
        return answer_all(bare, builder, requests, tokens)
    finally:
        bare.close()


def answer_all(
    bare: BarePipeline, builder: ChatBuilder, requests: Sequence[int], tokens: int
) -> BareAnswers:
    """Every number of requests, after a round that is not counted."""
    found: dict[int, Rate] = {}
    steps: list[StageSteps] = []
    for count in requests:
        _answer_round(bare, builder, count, tokens)
        first = len(bare.steps)
        began_cpu_s = time.process_time()
        rounds = [_answer_round(bare, builder, count, tokens) for _ in range(ROUNDS)]
        cpu_s = time.process_time() - began_cpu_s
        per_s = statistics.median(audio_s / wall_s for audio_s, wall_s in rounds)
        found[count] = Rate(per_s, cpu_s / sum(audio_s for audio_s, _ in rounds))
        steps += get_steps(bare.steps[first:], count)
    return BareAnswers(found, tuple(steps))


def _answer_round(
    bare: BarePipeline, builder: ChatBuilder, count: int, tokens: int
) -> tuple[float, float]:
    """Seconds of sound, and the seconds that it took."""
    began = time.perf_counter()
    for seed in range(count):
        messages = (Message(Role.USER, (TextPart(QUESTION),)),)
        request = ChatRequest(messages, builder.voices[0].id, max_tokens=tokens, seed=seed)
        bare.add(builder.build(f"bare-{time.monotonic_ns()}", request).request)
    samples = 0
    while any(stage.has_work() for stage in bare.stages.values()):
        received = [chunk.payload for chunk in bare.step()]
        samples += sum(len(sound.samples) for sound in received if isinstance(sound, Pcm))
    rate = bare.stages[bare.pipeline.sound.stage].capacity.sample_rate
    assert rate is not None, "a stage that makes sound has a rate"
    return samples / rate, time.perf_counter() - began


def get_steps(steps: Sequence[StepTimes], requests: int) -> list[StageSteps]:
    """Medians by stage; of the steps after the prompts, those that serve all requests."""
    prompts: dict[str, list[float]] = defaultdict(list)
    others: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if step.begins:
            prompts[step.stage].append(step.seconds)
        elif step.rows == requests:
            others[step.stage].append(step.seconds)
    return [
        StageSteps(
            stage,
            requests,
            statistics.median(prompts[stage]) if prompts[stage] else None,
            statistics.median(took),
            len(took),
        )
        for stage, took in others.items()
    ]


def private_memory(url: str) -> dict[str, int]:
    """Bytes that only this process has, by stage."""
    stages = httpx.get(f"{url}/health").json()["stages"]
    return {one["stage"]: psutil.Process(one["pid"]).memory_full_info().uss for one in stages}


def cpu_seconds(pid: int) -> float:
    """Taken so far by a process and those that it has started."""
    root = psutil.Process(pid)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return sum(one.user + one.system for one in times)


async def ask_served(server: RunningServer, requests: int, tokens: int) -> Rate:
    """Send the same rounds to a server."""
    limits = httpx.Limits(max_connections=requests)
    async with httpx.AsyncClient(base_url=server.url, timeout=TIMEOUT_S, limits=limits) as http:
        await asyncio.gather(*(ask(http, tokens, seed) for seed in range(requests)))
        began_cpu_s = cpu_seconds(server.pid)
        rounds = [
            await asyncio.gather(*(ask(http, tokens, seed) for seed in range(requests)))
            for _ in range(ROUNDS)
        ]
        return measure_rate(rounds, cpu_seconds(server.pid) - began_cpu_s)


def measure_rate(rounds: list[list[Answered | None]], cpu_s: float) -> Rate:
    """The rate of rounds that took this much CPU time."""
    answered = [[one for one in found if one is not None] for found in rounds]
    audio_s = [sum(one.audio_s for one in found) for found in answered]
    longest_s = [max((one.whole_s for one in found), default=math.inf) for found in answered]
    per_s = statistics.median(a / w for a, w in zip(audio_s, longest_s, strict=True))
    refused = sum(map(len, rounds)) - sum(map(len, answered))
    return Rate(per_s, cpu_s / sum(audio_s), refused)


def ratio_rows(bare: BareAnswers, served: Mapping[int, Rate]) -> Iterator[tuple[str, ...]]:
    """Sound per second and its CPU time, bare, served, and the second by the first."""
    for count, rate in served.items():
        alone = bare.rates[count]
        yield (
            str(count),
            str(rate.refused),
            *(f"{alone.throughput_x:.2f}", f"{rate.throughput_x:.2f}"),
            f"{rate.throughput_x / alone.throughput_x:.2f}",
            *(f"{alone.cpu_x:.2f}", f"{rate.cpu_x:.2f}", f"{rate.cpu_x / alone.cpu_x:.2f}"),
        )


def report(model: str, requests: Sequence[int], tokens: int, dtype: str) -> Iterator[str]:
    """Tables, as they are measured."""
    with observed() as observation:
        bare = in_own_process(measure_bare, model, requests, tokens, dtype)
        with serving(model, slots=max(requests), dtype=dtype) as server:
            served = {one: asyncio.run(ask_served(server, one, tokens)) for one in requests}
            memory = private_memory(server.url)
    yield f"Disturbed: {observation.disturbance or 'no'}.\n"
    rates = ("bare, audio-s/s", "served, audio-s/s", "served / bare")
    costs = ("bare, CPU-s per audio-s", "served, CPU-s per audio-s", "served / bare")
    yield table(("requests", "rejected with 429", *rates, *costs), ratio_rows(bare, served))
    steps = [
        (
            one.stage,
            str(one.requests),
            "" if one.prompt_s is None else f"{ms(one.prompt_s)} ms",
            f"{ms(one.step_s)} ms",
            str(one.steps),
        )
        for one in bare.steps
    ]
    yield table(("stage", "requests", "first step p50", "step p50", "steps"), steps)
    sizes = [(name, f"{size / _MIB:.0f} MiB") for name, size in memory.items()]
    yield table(("stage", "private memory"), sizes)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as `cantata serve --model` takes it")
    parser.add_argument(
        "--requests", type=int, nargs="+", default=[1, 4], help="numbers of requests at a time"
    )
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of an answer")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    given = parser.parse_args()
    for part in report(given.model, given.requests, given.tokens, given.dtype):
        print(part, flush=True)


if __name__ == "__main__":
    main()
