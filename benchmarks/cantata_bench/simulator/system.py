"""A server's parameters, and where they come from: a measured run, or assumptions in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from pydantic import Field, ValidationError

from cantata.contract.data.errors import ConfigError
from cantata_bench.results import BenchRun, Frozen, LoadResult, ServerlessBaseline, StepTime


class SimulatedStepCost(Frozen):
    """The time of a step that makes n frames, of all its rows together: a + b n."""

    fixed_s: float = Field(ge=0)
    frame_s: float = Field(ge=0)

    def seconds(self, frames: int) -> float:
        """How long it takes."""
        return self.fixed_s + self.frame_s * frames


class System(Frozen):
    """The parameters of a system: an api process, a talker and a decoder on some cores, or several
    such servers."""

    frame_period_s: float = Field(gt=0)
    slots: int = Field(ge=1)
    max_chunk_frames: int = Field(default=8, ge=1)
    max_batch_frames: int = Field(default=32, ge=1)
    talker: SimulatedStepCost
    prefill_s: float = Field(ge=0)
    """Seconds that a new request's prompt adds to its first step."""
    prompt_s: float = Field(ge=0)
    """Seconds of the talker's process to encode a new request's prompt."""
    decoder: SimulatedStepCost
    text_s: float = Field(ge=0)
    """Seconds of the api's machine to turn a text into prompts."""
    packet_s: float = Field(ge=0)
    """Seconds of the api process to frame and send a packet."""
    client_packet_s: float = Field(default=0.0, ge=0)
    """Seconds per packet of a measuring client on the same machine; 0: it runs elsewhere."""
    processors: int = Field(ge=1)
    """Processes that run at full speed together: cores, where the stages have no GPU."""
    noise: float = Field(default=0.0, ge=0)
    """How much the time of each piece of work varies: the standard deviation of its logarithm."""
    busy_start: float = Field(default=1.0, ge=1)
    """How many times slower everything is during the warm-up, by other work of the machine."""
    servers: int = Field(default=1, ge=1)
    """Such servers; each request goes to the one with the fewest."""
    edges: int = Field(default=0, ge=0)
    """Edges before them, which take requests in turn, and know the servers' places by links; 0:
    a balancer that knows all."""
    link_s: float = Field(default=0.0005, ge=0)
    """Seconds for a message between an edge and a server, including the work on both ends."""
    characters_per_s: float = Field(default=15.0, gt=0)
    """Characters of text per second of sound."""


def load_system(path: Path) -> System:
    """Read a system from YAML.

    Raises:
        ConfigError: unreadable, or not a system; says what is wrong.
    """
    try:
        return System.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error


def build_system(run: BenchRun) -> System:
    """A server's parameters from a measured run.

    Raises:
        ConfigError: the run has no floor, or no load with figures of the server's processes.
    """
    measured = [r for r in run.loads if r.processes and r.packets and r.summary]
    if run.floor is None or not measured:
        raise ConfigError("the run has no floor or no measured load: run `cantata bench`")
    floor, talker = run.floor, fit(run.floor.steps, run.floor.talker)
    first = floor.first_packet
    return System(
        frame_period_s=floor.frame_period_s,
        slots=run.slots,
        max_chunk_frames=run.max_chunk_frames,
        max_batch_frames=run.max_batch_frames,
        talker=talker,
        prefill_s=max(0.0, first.first_step_s - talker.seconds(1)),
        prompt_s=first.prompt_s,
        decoder=fit(floor.steps, floor.decoder),
        text_s=first.text_s,
        packet_s=_find_cost_per_packet(measured, floor),
        client_packet_s=sum(r.client.cpu_s for r in measured) / sum(r.packets for r in measured),
        processors=run.machine.cores,
        characters_per_s=_find_characters_per_s(measured),
    )


def fit(steps: Sequence[StepTime], stage: str) -> SimulatedStepCost:
    """Least squares over a stage's shapes, neither part below zero.

    Raises:
        ConfigError: nothing was measured of that stage.
    """
    seen = [(step.frames, step.seconds) for step in steps if step.stage == stage and step.frames]
    if not seen:
        raise ConfigError(f"no steps of {stage!r} were measured")
    frames, seconds = (np.array(column, dtype=float) for column in zip(*seen, strict=True))
    spread = float(((frames - frames.mean()) ** 2).sum())
    slope = 0.0
    if spread:
        slope = float(((frames - frames.mean()) * (seconds - seconds.mean())).sum()) / spread
    slope = min(max(slope, 0.0), float(seconds.mean() / frames.mean()))
    return SimulatedStepCost(fixed_s=float(seconds.mean() - slope * frames.mean()), frame_s=slope)


def _find_cost_per_packet(measured: Sequence[LoadResult], floor: ServerlessBaseline) -> float:
    """The api's CPU seconds for each packet; its work on texts counts as its own."""
    requests = sum(len(result.requests) for result in measured)
    packets = sum(result.packets for result in measured)
    cpu_s = sum(p.cpu_s for result in measured for p in result.processes if p.name == "api")
    return max(0.0, cpu_s - requests * floor.first_packet.text_s) / packets


def _find_characters_per_s(measured: Sequence[LoadResult]) -> float:
    spoken = [r for result in measured for r in result.requests if r.outcome == "spoken"]
    return sum(r.characters for r in spoken) / sum(r.audio_s for r in spoken)
