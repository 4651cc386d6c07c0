"""The GPU benchmark on a CPU and a tiny checkpoint: all of it but CUDA's own recording."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest
import torch

from cantata.contract.model.sampling import CodeSampling
from cantata.contract.model.talker import FrameDraws, RepetitionPenalty
from cantata.stages.ar.slot_steps import EVERY_KIND
from cantata.stages.common.graphs import ShapeGraphs
from cantata_models.moss_tts.codec import AudioDecoder
from cantata_models.moss_tts.random_checkpoint_codec import (
    TINY_LOCAL,
    TINY_NANO,
    MossCodecShape,
    write_codec,
)
from cantata_models.qwen3_tts.codec import Qwen3TtsDecoder
from cantata_models.qwen3_tts.config import load_config
from cantata_models.qwen3_tts.random_checkpoint import TINY_LARGE, write_checkpoint
from documented import HOWTOS, read_block
from gpu import moss_codec, moss_frames, patches, step
from gpu.cli import exit_code, main, run_part
from gpu.codec import TINY_BATCHES, TINY_FRAMES, CodecRow
from gpu.part import PARTS
from gpu.predictor import FrameCompletion
from gpu.report import PartResult, markdown
from gpu.timing import Compared, Graphed, Timing, graphed

CPU, META = torch.device("cpu"), torch.device("meta")
RUN = Path(__file__).parents[1] / "gpu" / "run.py"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("tiny"), TINY_LARGE, "custom_voice", 0)


@pytest.fixture
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu.timing.BUDGET_S", 0.0)


def test_graphs_decode_streams_as_the_decoder_does(checkpoint: Path) -> None:
    """Slots and codes reach the graph of their shape, and all graphs share one state."""
    decoder = Qwen3TtsDecoder(checkpoint, CPU)
    plain, replayed, every = decoder.init_state(3), decoder.init_state(3), torch.arange(3)
    graphs = ShapeGraphs(lambda slots, codes: decoder.decode(replayed, slots, codes), CPU)
    steps = [([0], 2), ([2, 0], 1), ([1], 2), ([0, 1], 1), ([2], 2)]
    made = [
        (torch.tensor(slots), torch.randint(decoder.codebook_size, (len(slots), frames, 16)))
        for slots, frames in steps
    ]
    for slots, codes in made:
        graphs.capture(slots, codes)
    decoder.reset(replayed, every)
    for slots, codes in made:
        assert torch.equal(graphs(slots, codes), decoder.decode(plain, slots, codes))
    assert replayed.positions.tolist() == plain.positions.tolist() == [4, 3, 3]


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_graphs_complete_frames_as_the_predictor_does(checkpoint: Path, sampled: bool) -> None:
    complete = FrameCompletion(load_config(checkpoint), CPU, sampled)
    graphs = ShapeGraphs(complete, CPU)
    graphs.capture(*complete.inputs(2))
    with torch.inference_mode():
        for inputs in (complete.inputs(2), complete.inputs(2)):
            codes = graphs(*inputs)
            assert codes.shape == (2, 15)
            assert torch.equal(codes, complete(*inputs))


def test_another_shape_than_those_captured_is_rejected() -> None:
    graphs = ShapeGraphs(lambda x: 2 * x, CPU)
    graphs.capture(torch.zeros(3))
    with pytest.raises(ValueError, match=r"\(\(4,\),\); captured: \(\(3,\),\)"):
        graphs(torch.zeros(4))


def test_no_step_reads_a_value_on_the_host(checkpoint: Path) -> None:
    """What a graph could not hold; tensors without values cannot be read."""
    decoder = Qwen3TtsDecoder(checkpoint, META)
    state = decoder.init_state(4)
    slots = torch.zeros(2, dtype=torch.int64, device=META)
    codes = torch.zeros(2, 3, 16, dtype=torch.int64, device=META)
    assert decoder.decode(state, slots, codes).shape == (2, 3 * decoder.samples_per_frame, 1)
    for sampled in (False, True):
        complete = FrameCompletion(load_config(checkpoint), META, sampled)
        with torch.inference_mode():
            assert complete(*complete.inputs(4)).shape == (4, 15)
    with pytest.raises(RuntimeError, match="meta"):
        codes.max().item()


@pytest.mark.parametrize("shape", [TINY_LOCAL, TINY_NANO], ids=["local", "nano"])
def test_moss_s_decoder_reads_no_value_on_the_host(shape: MossCodecShape, tmp_path: Path) -> None:
    decoder = AudioDecoder(write_codec(tmp_path, shape, 0), shape.codebooks, META)
    state = decoder.init_state(4)
    slots = torch.zeros(2, dtype=torch.int64, device=META)
    codes = torch.zeros(2, 3, shape.codebooks, dtype=torch.int64, device=META)
    assert decoder.decode(state, slots, codes).shape == (2, 3 * decoder.samples_per_frame, 2)


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize("model", ["local", "nano"])
def test_moss_s_frames_are_completed_in_graphs_without_values(model: str, sampled: bool) -> None:
    config = moss_frames.configs(tiny=True)[model]
    nowhere, complete = (moss_frames.FrameStep(config, device, sampled) for device in (META, CPU))
    graphs = ShapeGraphs(complete, CPU)
    graphs.capture(*complete.inputs(2))
    with torch.inference_mode():
        assert nowhere(*nowhere.inputs(4)).shape == (4, config.num_codebooks)
        for inputs in (complete.inputs(2), complete.inputs(2)):
            assert torch.equal(graphs(*inputs), complete(*inputs))


@pytest.mark.parametrize("is_sampled", [False, True], ids=["greedy", "sampled"])
def test_a_penalty_reads_no_value_on_the_host(is_sampled: bool) -> None:
    """Greedy and sampled choices after a penalty of repetition, as the engine's graphs have it."""
    floats = torch.ones(4, device=META)
    spoken = torch.zeros(4, 9, 3, dtype=torch.int64, device=META)
    sampling = CodeSampling(floats, spoken[:, 0, 0], floats)
    uniforms = torch.zeros(4, 3, device=META)
    draws = FrameDraws(uniforms, sampling, is_sampled, RepetitionPenalty(spoken, floats))
    with torch.inference_mode():
        assert draws.choose(torch.zeros(4, 20, device=META), 2).shape == (4,)


@pytest.mark.usefixtures("few_calls")
def test_a_graph_with_different_results_is_reported() -> None:
    calls: list[int] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        calls.append(0)
        return x * len(calls)

    found = graphed(function, ShapeGraphs(function, CPU), [torch.ones(2)], CPU, calls.clear)
    assert found.difference == 0
    found = graphed(function, ShapeGraphs(function, CPU), [torch.ones(2)], CPU, lambda: None)
    assert found.difference == 1


def test_the_table_shows_what_a_graph_gains() -> None:
    step = Compared(Timing(8.0, 9.0, 50), Graphed(Timing(2.0, 2.5, 50), 0.4, 0.0), None)
    rows = [CodecRow(4, 1, 0.32, step)]
    rows += [CodecRow(8, 1, 0.64, Compared(step.eager, None, "no such kernel"))]
    result = PartResult("measured", "", 3.5, [asdict(row) for row in rows])
    skipped = PartResult("skipped", "vLLM is not installed", 0.1, [])
    page = markdown({"gpu": "a card"}, {"codec": result, "serve": skipped})
    assert "| float32 | 4 | 1 | 8.00 | 2.00 | 4.0 | 0 | 160.0 |" in page
    assert "| float32 | 8 | 1 | 8.00 | no such kernel | | | 80.0 |" in page
    assert "skipped, 0 rows in 0.1 s: vLLM is not installed" in page


@pytest.mark.thorough
@pytest.mark.integration
def test_the_script_measures_parts_and_writes_them_down(tmp_path: Path) -> None:
    own = {"python": sys.executable, "benchmarks/gpu/run.py": str(RUN), "artifacts/gpu-tiny": "out"}
    command = [own.get(word, word) for word in read_block(HOWTOS / "gpu.md", "tiny").split()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads((tmp_path / "out" / "gpu.json").read_text())
    assert (found["shape"], found["device"]) == ("tiny", "cpu")
    codec, predictor = found["parts"]["codec"], found["parts"]["predictor"]
    assert codec["outcome"] == predictor["outcome"] == "measured"
    shapes = [(row["batch"], row["frames"]) for row in codec["rows"]]
    assert shapes == [(b, t) for b in TINY_BATCHES for t in TINY_FRAMES]
    assert [row["sampled"] for row in predictor["rows"]] == [False, False, True, True]
    for row in codec["rows"] + predictor["rows"]:
        assert row["step"]["eager"]["median_ms"] > 0
        assert row["step"]["graph"] is None
    page = (tmp_path / "out" / "gpu.md").read_text()
    assert page.count("not captured") == len(codec["rows"]) + len(predictor["rows"])


@pytest.mark.usefixtures("few_calls")
@pytest.mark.parametrize(
    ("part", "kinds"),
    [
        (moss_codec, [(b, t) for b in moss_codec.TINY_BATCHES for t in moss_codec.TINY_FRAMES]),
        (moss_frames, [(s, b) for s in ("greedy", "sampled") for b in moss_frames.TINY_BATCHES]),
    ],
    ids=["codec", "frames"],
)
def test_moss_s_parts_are_measured_for_both_models(
    part: ModuleType, kinds: list[tuple[str, int]], tmp_path: Path
) -> None:
    rows = [json.loads(json.dumps(asdict(row))) for row in part.measure(tmp_path, CPU, True)]
    assert all(row["step"]["eager"]["median_ms"] > 0 and row["audio_s"] > 0 for row in rows)
    name = part.__name__.removeprefix("gpu.")
    page = markdown({}, {name: PartResult("measured", "", 1.0, rows)})
    cells = [line.split(" | ")[:3] for line in page.splitlines() if "not captured" in line]
    assert cells == [[f"| {m}", str(a), str(b)] for m in ("local", "nano") for a, b in kinds]
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("few_calls")
def test_the_talker_s_steps_are_measured_by_kind_and_shape(checkpoint: Path) -> None:
    rows = [asdict(row) for row in step.measure(checkpoint, CPU, True)]
    page = markdown({}, {"step": PartResult("measured", "", 1.0, rows)})
    cells = [line.split(" | ")[:4] for line in page.splitlines() if "not captured" in line]
    steps = [("decode", b, step.TINY_LENGTHS[0]) for b in step.TINY_BATCHES]
    steps += [("prompt", b, step.TINY_PROMPTS[0]) for b in step.TINY_PROMPT_BATCHES]
    assert cells == [
        [f"| {name}", kind, str(b), str(n)] for kind in step.KINDS for name, b, n in steps
    ]
    assert all(row["time"]["eager"]["median_ms"] > 0 for row in rows)


def test_no_talker_s_step_reads_a_value_on_the_host(checkpoint: Path) -> None:
    """Tensors without values: rows, backbone, penalties, draws and the frames' places."""
    talker = step.TalkerSteps(checkpoint, META, slots=4, positions=64)
    for kind in (*step.KINDS.values(), EVERY_KIND):
        decode, indices = talker.prepare_decode(kind, 64, 3)
        prefill, prompts = talker.prepare_prefill(kind, 16, 2)
        with torch.inference_mode():
            assert decode(indices).shape == (3, 16)
            assert prefill(prompts).shape == (2, 16)


@pytest.mark.usefixtures("few_calls")
def test_patches_are_measured_by_steps_and_requests(tmp_path: Path) -> None:
    rows = [asdict(row) for row in patches.measure(tmp_path, CPU, True)]
    page = markdown({}, {"patches": PartResult("measured", "", 1.0, rows)})
    cells = [line.split(" | ")[:2] for line in page.splitlines() if "not captured" in line]
    kinds = [(steps, batch) for steps in patches.STEPS for batch in patches.TINY_BATCHES]
    assert cells == [[f"| {steps}", str(batch)] for steps, batch in kinds]
    assert all(row["step"]["eager"]["median_ms"] > 0 for row in rows)
    assert [row["audio_s"] for row in rows] == [0.16 * batch for _, batch in kinds]
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.integration
def test_a_part_that_fails_says_why_and_leaves_the_others_alone(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", TINY_LARGE, "custom_voice", 0)
    (checkpoint / "speech_tokenizer" / "config.json").unlink()
    parts = ("codec", "predictor")
    results = {part: run_part(part, checkpoint, "cpu", True, tmp_path) for part in parts}
    assert results["codec"].outcome == "failed"
    assert "speech_tokenizer/config.json" in results["codec"].reason
    assert results["predictor"].outcome == "measured"
    assert exit_code(results) == 1
    assert exit_code({"predictor": results["predictor"]}) == 0


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.skipif(torch.cuda.is_available(), reason="here it can be measured")
def test_serving_is_skipped_without_a_cuda_build_of_vllm(checkpoint: Path, tmp_path: Path) -> None:
    result = run_part("serve", checkpoint, "cuda", True, tmp_path)
    assert (result.outcome, exit_code({"serve": result})) == ("skipped", 0)
    assert "requirements/cuda.txt" in result.reason


@pytest.mark.thorough
@pytest.mark.integration
def test_serving_is_measured_where_vllm_runs(checkpoint: Path, tmp_path: Path) -> None:
    result = run_part("serve", checkpoint, "cpu", True, tmp_path)
    assert result.outcome == "measured", result.reason
    assert [(row["streams"], row["spoken"], row["refused"]) for row in result.rows] == [
        (1, 3, 0),
        (2, 6, 0),
    ]
    for row in result.rows:
        assert 0 < row["ttfp_p50_ms"] <= row["ttfp_p95_ms"]
        assert row["rtf_p50"] > 0
        assert row["audio_s_per_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--parts", "codec,talker"],
            f"--parts: talker; valid: {', '.join(PARTS)}",
        ),
        ([], "sees no CUDA device"),
    ],
)
def test_what_cannot_be_done_is_rejected_before_anything_is_written(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        main(["--out", str(tmp_path / "out"), *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
