"""A synthetic run."""

from __future__ import annotations

from cantata_bench.results import (
    BareBatch,
    BenchRun,
    ClientHealth,
    FirstPacket,
    ListenedRequest,
    LoadResult,
    LoadSpec,
    Machine,
    ProcessUse,
    ServerlessBaseline,
    StepTime,
)
from cantata_bench.simulator.system import SimulatedStepCost, System
from cantata_bench.summary import summarize

SYSTEM = System(
    frame_period_s=0.08,
    slots=16,
    talker=SimulatedStepCost(fixed_s=0.008, frame_s=0.0005),
    prefill_s=0.003,
    prompt_s=0.004,
    decoder=SimulatedStepCost(fixed_s=0.002, frame_s=0.0006),
    text_s=0.002,
    packet_s=0.0003,
    processors=2,
)


def record(ttfp_s: float = 0.04, **fields: object) -> ListenedRequest:
    spoken = {
        "outcome": "spoken",
        "sent_s": 1.0,
        "characters": 30,
        "header_s": ttfp_s,
        "ttfp_s": ttfp_s,
        "onset_s": ttfp_s + 0.1,
        "e2e_s": 0.5,
        "audio_s": 2.0,
        "packets": 25,
        "interval_p50_s": 0.01,
        "interval_max_s": 0.02,
        "underruns_s": (0.0, 0.0, 0.0, 0.0),
    }
    return ListenedRequest.model_validate({**spoken, **fields})


def load(streams: int, ttfp_s: float, throughput_x: float, **spec: object) -> LoadResult:
    records = tuple(record(ttfp_s) for _ in range(4))
    return LoadResult(
        spec=LoadSpec.model_validate({"kind": "closed", "streams": streams, **spec}),
        summary=summarize(records, throughput_x),
        requests=records,
        packets=100,
        audio_s=8.0,
        wall_s=2.0,
        client=ClientHealth(cpu_s=0.1, lag_p99_s=0.001, lag_max_s=0.002, behind=streams > 8),
        processes=(
            ProcessUse(name="api", cpu_s=0.2, peak_rss_bytes=200 << 20),
            ProcessUse(name="cantata:talker:0", cpu_s=1.0, peak_rss_bytes=800 << 20),
        ),
    )


def steps(stage: str, cost: SimulatedStepCost) -> list[StepTime]:
    return [
        StepTime(stage=stage, rows=n, frames=n, seconds=cost.seconds(n), count=9)
        for n in (1, 4, 8, 16)
    ]


def made_up_run() -> BenchRun:
    talker, decoder = SYSTEM.talker.seconds(1), SYSTEM.decoder.seconds(1)
    first = FirstPacket(
        text_s=SYSTEM.text_s,
        prompt_s=SYSTEM.prompt_s,
        first_step_s=talker + SYSTEM.prefill_s,
        codec_step_s=decoder,
        total_s=SYSTEM.prompt_s + talker + SYSTEM.prefill_s + decoder,
    )
    return BenchRun(
        began="2026-01-01T00:00:00+00:00",
        machine=Machine(cpu="a processor", cores=2, load_average=0.1, python="3.11.2"),
        model="a-model",
        slots=16,
        max_chunk_frames=8,
        max_batch_frames=32,
        server_ready_s=12.0,
        floor=ServerlessBaseline(
            frame_period_s=0.08,
            talker="talker",
            decoder="decoder",
            first_packet=first,
            batches=(
                BareBatch(streams=1, throughput_x=7.0, slowest_stage_x=9.0),
                BareBatch(streams=16, throughput_x=40.0, slowest_stage_x=70.0),
            ),
            steps=(*steps("talker", SYSTEM.talker), *steps("decoder", SYSTEM.decoder)),
        ),
        loads=(load(1, 0.04, 7.0), load(16, 0.2, 36.0), load(4, 0.05, 10.0, kind="live")),
        batch_mode=(load(1, 0.8, 7.0),),
    )
