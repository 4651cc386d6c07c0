"""The bare loop over stages without weights: what it counts, and that it leaves nothing behind."""

from __future__ import annotations

from counting_stages import PIPELINE, CountingDecoder, CountingTalker

from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata_bench.baseline import BarePipeline, measure_bare


class SpeechBuilder:
    voices = (Voice("ann", "Ann"), Voice("bob", "Bob"))

    def __init__(self) -> None:
        self.spoken: list[SpeechRequest] = []

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        self.spoken.append(request)
        return (PipelineRequest(request_id, {"first": {"frames": 6}}),)  # type: ignore[dict-item]


def test_the_bare_loop_measures_every_stage_at_every_batch() -> None:
    talker, decoder, builder = CountingTalker(), CountingDecoder(), SpeechBuilder()
    bare = BarePipeline(PIPELINE, {"first": talker, "last": decoder})  # type: ignore[dict-item]
    floor = measure_bare(bare, builder, (1, 2, 4, 32), seed=0)  # type: ignore[arg-type]
    assert (floor.talker, floor.decoder, floor.frame_period_s) == ("first", "last", 0.08)
    assert [batch.streams for batch in floor.batches] == [1, 2, 4]  # not beyond the slots
    assert talker.most == 4
    for batch in floor.batches:
        assert 0 < batch.throughput_x <= batch.slowest_stage_x
    first = floor.first_packet
    # Medians: each part is no longer than the whole; their sum may be, by luck.
    assert 0 < max(first.prompt_s, first.first_step_s, first.codec_step_s) <= first.total_s
    shapes = {(step.stage, step.rows, step.frames) for step in floor.steps}
    assert {("first", 4, 4), ("last", 4, 4), ("last", 1, 8), ("last", 4, 32)} <= shapes
    assert {request.voice for request in builder.spoken} == {"ann", "bob"}
    assert not any({**talker.get_counts(), **decoder.get_counts()}.values())
    assert talker.closed
    assert decoder.closed
