"""The results of a run, as stored in its JSON file. All times in seconds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

RESERVES_S = (0.0, 0.05, 0.1, 0.2)
"""How long simulated players wait after the first packet before they play: C0, C50, C100, C200."""

STAMPEDE = 3
"""Listeners of a stampede for each that has room."""


class Frozen(BaseModel):
    """Immutable; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LoadSpec(Frozen):
    """One load."""

    kind: Literal["closed", "live", "reconnecting", "open"]
    """closed: each stream requests its next text when one has arrived whole. live: when it has
    been listened to, in real time. reconnecting: live, each request on a new connection. open:
    requests arrive at random (Poisson)."""
    streams: int = 0
    """Of all but open loads."""
    arrive_within_s: float = 0.0
    """A stampede: the streams begin at random times within this many seconds, and requests sent
    in the warm-up count too. 0: all begin at once."""
    retry_s: float | None = None
    """Seconds after which a rejected request is retried; None: as `retry-after` says."""
    rate: float = 0.0
    """Requests per second, of open loads."""
    transport: Literal["websocket", "http"] = "websocket"
    texts: Literal["short", "medium", "long", "mixed"] = "mixed"
    warm_up_s: float = 3.0
    """Requests sent by then are not counted."""
    seconds: float = 20.0
    """Measured, after the warm-up."""
    seed: int = 0
    honour_retry_after: bool = True
    """Retry a rejected request after `retry-after`; otherwise give up."""

    @property
    def title(self) -> str:
        """Such as "closed 8, websocket, mixed"."""
        level = f"{self.rate:g}/s" if self.kind == "open" else str(self.streams)
        within = f" within {self.arrive_within_s:g} s" if self.arrive_within_s else ""
        return f"{self.kind} {level}{within}, {self.transport}, {self.texts}"

    @property
    def is_stampede(self) -> bool:
        """Whether more requests arrive at once than have room."""
        return self.arrive_within_s > 0

    @property
    def counted_from_s(self) -> float:
        """Requests sent from then on are counted."""
        return 0.0 if self.is_stampede else self.warm_up_s


class RequestRecord(Frozen):
    """One request as its listener saw it; times count from its sending."""

    outcome: Literal["spoken", "refused", "failed"]
    sent_s: float
    """Since the load began."""
    characters: int
    refusals: int = 0
    """Times that it was rejected with 429."""
    error: str = ""
    header_s: float = 0.0
    """First byte of the answer."""
    ttfp_s: float = 0.0
    """First packet of sound."""
    onset_s: float = 0.0
    """First audible sample, played as soon as it can be."""
    e2e_s: float = 0.0
    """Last packet."""
    audio_s: float = 0.0
    packets: int = 0
    interval_p50_s: float = 0.0
    """Between two packets."""
    interval_max_s: float = 0.0
    underruns_s: tuple[float, ...] = ()
    """How long a player with each of `RESERVES_S` stalls."""
    timeline: dict[str, float] = {}
    """Where the server says that the first packet's time went, step after step."""
    words: int = 0
    word_errors: float = 0.0
    """By the recogniser, where it was asked for."""

    @property
    def rtf(self) -> float:
        """Seconds of waiting per second of sound."""
        return self.e2e_s / self.audio_s


class Spread(Frozen):
    """How a figure is spread over the requests."""

    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class ProcessUse(Frozen):
    """What one process took during a load."""

    name: str
    cpu_s: float
    peak_rss_bytes: int


class ClientHealth(Frozen):
    """Whether the measuring client kept up."""

    cpu_s: float
    lag_p99_s: float
    """How late its event loop woke up."""
    lag_max_s: float
    behind: bool
    """Its figures are the client's as much as the server's."""


class LoadSummary(Frozen):
    """One load in figures."""

    spoken: int
    failed: int
    refused: int
    """Requests that were never admitted."""
    refusals: int
    """Responses with 429."""
    header: Spread
    ttfp: Spread
    ttfp_steps: dict[str, Spread] = {}
    """Of its parts: the server's steps, and what was spent outside of them."""
    onset: Spread
    e2e: Spread
    rtf: Spread
    interval: Spread
    """Largest interval of each request."""
    continuous: tuple[float, ...]
    """Share of streams that never run dry, by `RESERVES_S`."""
    underrun_max_s: float
    throughput_x: float
    """Seconds of sound that arrived per second."""
    wer: float | None


class LoadResult(Frozen):
    """One load, measured."""

    spec: LoadSpec
    summary: LoadSummary | None
    """None where nothing was spoken."""
    requests: tuple[RequestRecord, ...]
    packets: int
    """Of all requests, the warm-up's too."""
    audio_s: float
    """Likewise."""
    wall_s: float
    client: ClientHealth
    processes: tuple[ProcessUse, ...] = ()
    """The server's; empty if it was not started here."""
    disturbance: str = ""
    """What other processes did meanwhile, as `calm.Evidence` says it; empty: nothing."""

    @property
    def doubt(self) -> str:
        """Why its figures do not describe the server; empty: they do."""
        behind = f"the client fell behind by {1000 * self.client.lag_p99_s:.0f} ms"
        return ", ".join(filter(None, (self.disturbance, behind if self.client.behind else "")))

    @property
    def cpu_per_audio_s(self) -> float | None:
        """The server's CPU seconds per second of sound."""
        if not self.processes or not self.audio_s:
            return None
        return sum(process.cpu_s for process in self.processes) / self.audio_s


class StepTime(Frozen):
    """Median time of a stage's steps of one shape."""

    stage: str
    rows: int
    """Requests in the step."""
    frames: int
    """Made, of all rows together."""
    seconds: float
    count: int


class FirstPacket(Frozen):
    """One request alone in the bare loop, medians."""

    text_s: float
    """The request builder's work on the text; not part of the bare loop's time."""
    prompt_s: float
    """Encoding the prompt and registering it with every stage."""
    first_step_s: float
    """Prefill, and the first frame."""
    codec_step_s: float
    total_s: float
    """From the prompt to the first packet: the last three, and what is between them."""


class BareBatch(Frozen):
    """The bare loop with this many requests at a time."""

    streams: int
    throughput_x: float
    """Both stages in turn, in one process."""
    slowest_stage_x: float
    """Of the slower stage alone, as if the other had a core of its own."""


class Floor(Frozen):
    """The same weights without a server: what no server could beat in one process."""

    frame_period_s: float
    talker: str
    decoder: str
    """Names of the first and the last stage."""
    first_packet: FirstPacket
    batches: tuple[BareBatch, ...]
    steps: tuple[StepTime, ...]
    disturbance: str = ""
    """As a load's."""

    def batch(self, streams: int) -> BareBatch:
        """The measured batch that this many streams are compared with."""
        fitting = [b for b in self.batches if b.streams <= streams]
        return max(fitting or self.batches, key=lambda b: b.streams)


class LongText(Frozen):
    """One very long text."""

    minutes: float
    """Of text, at 900 characters each."""
    record: RequestRecord
    processes_before: tuple[ProcessUse, ...]
    """After one minute of text."""
    processes_after: tuple[ProcessUse, ...]
    disturbance: str = ""
    """As a load's."""


class Machine(Frozen):
    """Where it was measured."""

    cpu: str
    cores: int
    load_average: float
    """One minute's, before the run."""
    python: str


class Run(Frozen):
    """One run of the benchmark."""

    version: int = 1
    began: str
    """ISO 8601."""
    machine: Machine
    model: str
    slots: int = 0
    """Of the deployment, as the next two; 0: not known."""
    max_chunk_frames: int = 0
    max_batch_frames: int = 0
    server_ready_s: float | None = None
    stage_ready_s: dict[str, float] = {}
    floor: Floor | None = None
    loads: tuple[LoadResult, ...] = ()
    batch_mode: tuple[LoadResult, ...] = ()
    """Of the loads those that were repeated with async_chunk: false, in turns with the others."""
    long_text: LongText | None = None

    def load(self, kind: str, level: float, transport: str = "websocket") -> LoadResult | None:
        """The first load of this kind and level that spoke."""
        for result in self.loads:
            spec = result.spec
            found = spec.rate if kind == "open" else spec.streams
            if (spec.kind, found, spec.transport) == (kind, level, transport) and result.summary:
                return result
        return None
