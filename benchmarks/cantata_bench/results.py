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
    """What one load asks of a server."""

    kind: Literal["closed", "live", "reconnecting", "open"]
    """closed: each stream requests its next text when one has arrived whole. live: when it has
    been listened to, in real time. reconnecting: live, each request on a new connection. open:
    requests arrive at random (Poisson)."""
    streams: int = 0
    """Number of streams; only for loads that are not open."""
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


class ListenedRequest(Frozen):
    """One request as its listener saw it; times are seconds from its sending."""

    outcome: Literal["spoken", "refused", "failed"]
    sent_s: float
    """Seconds from the load's beginning to the sending."""
    characters: int
    refusals: int = 0
    """Times that it was rejected with 429."""
    error: str = ""
    header_s: float = 0.0
    """When the first byte of the answer arrived."""
    ttfp_s: float = 0.0
    """When the first packet of sound arrived."""
    onset_s: float = 0.0
    """When the first audible sample would be heard, played as soon as possible."""
    e2e_s: float = 0.0
    """When the last packet arrived."""
    audio_s: float = 0.0
    packets: int = 0
    interval_p50_s: float = 0.0
    """Median time between two packets."""
    interval_max_s: float = 0.0
    underruns_s: tuple[float, ...] = ()
    """How long a player with each of `RESERVES_S` stalls."""
    timeline: dict[str, float] = {}
    """Where the server says that the first packet's time went, step after step."""
    words: int = 0
    word_errors: float = 0.0
    """Word errors by the recognizer, if it was used."""

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
    """CPU time and memory of one process during a load."""

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
    """Whether the client fell behind, so that its figures are as much its own as the server's."""


class LoadSummary(Frozen):
    """Figures of one load."""

    spoken: int
    failed: int
    refused: int
    """Requests that were never admitted."""
    refusals: int
    """Responses with 429."""
    header: Spread
    ttfp: Spread
    ttfp_steps: dict[str, Spread] = {}
    """Parts of the TTFP: the server's steps, and the time outside of them."""
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
    """A load and its measurements."""

    spec: LoadSpec
    summary: LoadSummary | None
    """None if nothing was spoken."""
    requests: tuple[ListenedRequest, ...]
    packets: int
    """Packets of all requests, including the warm-up's."""
    audio_s: float
    """Likewise."""
    wall_s: float
    client: ClientHealth
    processes: tuple[ProcessUse, ...] = ()
    """The server's; empty if it was not started here."""
    disturbance: str = ""
    """What other processes did meanwhile, from `noise_guard.Evidence`; empty: nothing."""

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
    """Medians of one request that runs alone in the bare loop."""

    text_s: float
    """The request builder's work on the text; not part of the bare loop's time."""
    prompt_s: float
    """Encoding the prompt and registering it with every stage."""
    first_step_s: float
    """Prefill, and the first frame."""
    codec_step_s: float
    total_s: float
    """Seconds from the prompt to the first packet: the last three, and the time between them."""


class BareBatch(Frozen):
    """The bare loop with this many requests at a time."""

    streams: int
    throughput_x: float
    """Both stages in turn, in one process."""
    slowest_stage_x: float
    """The slower stage alone, as if the other had a core of its own, in seconds of sound per
    second."""


class ServerlessBaseline(Frozen):
    """Figures of the same weights without a server: no server in one process could be faster."""

    frame_period_s: float
    talker: str
    decoder: str
    """Names of the first and the last stage."""
    first_packet: FirstPacket
    batches: tuple[BareBatch, ...]
    steps: tuple[StepTime, ...]
    disturbance: str = ""
    """As in `LoadResult`."""

    def batch(self, streams: int) -> BareBatch:
        """The measured batch that this many streams are compared with."""
        fitting = [b for b in self.batches if b.streams <= streams]
        return max(fitting or self.batches, key=lambda b: b.streams)


class LongText(Frozen):
    """Measurements of one very long text."""

    minutes: float
    """Length of the text in minutes, at 900 characters each."""
    record: ListenedRequest
    processes_before: tuple[ProcessUse, ...]
    """Processes after one minute of text."""
    processes_after: tuple[ProcessUse, ...]
    disturbance: str = ""
    """As in `LoadResult`."""


class Machine(Frozen):
    """Where it was measured."""

    cpu: str
    cores: int
    load_average: float
    """Load average over one minute, before the run."""
    python: str


class BenchRun(Frozen):
    """One run of the benchmark."""

    version: int = 1
    began: str
    """ISO 8601."""
    machine: Machine
    model: str
    slots: int = 0
    """Slots of the deployment, as in the next two fields; 0: unknown."""
    max_chunk_frames: int = 0
    max_batch_frames: int = 0
    server_ready_s: float | None = None
    stage_ready_s: dict[str, float] = {}
    floor: ServerlessBaseline | None = None
    loads: tuple[LoadResult, ...] = ()
    batch_mode: tuple[LoadResult, ...] = ()
    """Repetitions of some loads with async_chunk: false, in turns with the others."""
    long_text: LongText | None = None

    def load(self, kind: str, level: float, transport: str = "websocket") -> LoadResult | None:
        """The first load of this kind and level that spoke."""
        for result in self.loads:
            spec = result.spec
            found = spec.rate if kind == "open" else spec.streams
            if (spec.kind, found, spec.transport) == (kind, level, transport) and result.summary:
                return result
        return None
