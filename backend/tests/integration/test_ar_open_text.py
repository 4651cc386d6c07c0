"""Text that arrives while it is spoken: the request waits in its stage; the frames are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cantata.config import ArDeployment
from cantata.contract.data.errors import InvalidRequest, ProtocolViolation
from cantata.contract.data.request import SamplingOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from tiny_talker.checkpoint import TEXT_VOCAB, save_tiny_checkpoint
from tiny_talker.driving import TALKER, Frames, Listener, speak, varied_payloads
from tiny_talker.inputs import TinyInput, TinyText

pytestmark = pytest.mark.vllm

FRAMES = 30
TEXT = [7, 3, 11, 3, 29, 5, 17, 2, 23, 8, 31, 13]


@pytest.fixture(scope="module", params=["vllm", "graphs"])
def engine(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("tiny_talker")
    save_tiny_checkpoint(folder)
    deployment = ArDeployment(engine=request.param, slots=8, max_model_len=128)
    stage = build_stage(TALKER, folder, deployment)
    yield stage
    stage.close()


@pytest.fixture
def stage(engine: Stage) -> Iterator[Stage]:
    yield engine
    assert not engine.has_work()
    assert set(engine.get_counts().values()) == {0}


def payload(text: Sequence[int], **more: Any) -> TinyInput:
    """Text beside the frames, sampled, of a fixed length."""
    sampling = SamplingOptions(seed=3, temperature=0.9)
    fixed = TinyInput(track=True, max_frames=FRAMES, min_frames=FRAMES, sampling=sampling)
    return replace(fixed, text=list(text), **more)


def run(stage: Stage, listener: Listener) -> None:
    """Step until nothing can continue."""
    while stage.has_work():
        listener.step(stage)


def arrive(stage: Stage, cuts: Sequence[int], steps: int | None) -> Frames:
    """Speak TEXT that arrives in parts; `steps` between two of them, None: all that can be made."""
    listener = Listener()
    ends = [*cuts, len(TEXT)]
    stage.add("open", payload(TEXT[: ends[0]], open=True), batch=False)
    for start, end in zip(ends, [*ends[1:], None], strict=True):
        made = 0
        while stage.has_work() and (steps is None or made < steps):
            listener.step(stage)
            made += 1
        if end is not None:
            stage.extend("open", TinyText(text=TEXT[start:end]), final=end == len(TEXT))
    run(stage, listener)
    assert listener.finished("open")
    return listener.frames("open")


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("steps", [None, 0, 1, 3])
@pytest.mark.parametrize("cuts", [[1], [1, 2, 3, 4, 5, 6], [5, 6], [3, 11], [4, 4]])
def test_late_text_is_spoken_as_the_whole(stage: Stage, cuts: list[int], steps: int | None) -> None:
    whole = speak(stage, {"whole": payload(TEXT)})["whole"]
    np.testing.assert_array_equal(arrive(stage, cuts, steps), whole)


def test_an_end_without_text_repeats_the_last_row(stage: Stage) -> None:
    listener = Listener()
    stage.add("open", payload(TEXT, open=True), batch=False)
    run(stage, listener)
    stage.extend("open", TinyText(text=[]), final=True)
    run(stage, listener)
    whole = speak(stage, {"whole": payload(TEXT)})["whole"]
    np.testing.assert_array_equal(listener.frames("open"), whole)


def test_it_waits_for_text_while_others_go_on(stage: Stage) -> None:
    others = varied_payloads(4, seed=1)
    alone = speak(stage, others)
    listener = Listener()
    stage.add("open", payload(TEXT[:3], open=True), batch=False)
    run(stage, listener)
    # One frame from the prompt's row, one with each row after it: text is never padded.
    assert len(listener.frames("open")) == 3
    assert not stage.has_work()
    assert stage.get_counts()["slots"] == 1
    for name, other in others.items():
        stage.add(name, other, batch=False)
    run(stage, listener)
    for name, frames in alone.items():
        np.testing.assert_array_equal(listener.frames(name), frames, err_msg=name)
    assert len(listener.frames("open")) == 3
    stage.extend("open", TinyText(text=TEXT[3:]), final=True)
    run(stage, listener)
    whole = speak(stage, {"whole": payload(TEXT)})["whole"]
    np.testing.assert_array_equal(listener.frames("open"), whole)


def test_many_open_texts_do_not_mix(stage: Stage) -> None:
    random = np.random.default_rng(0)
    texts = {f"r{n}": random.integers(0, TEXT_VOCAB, 6 + 3 * n).tolist() for n in range(6)}
    expected = {name: speak(stage, {name: payload(text)})[name] for name, text in texts.items()}
    listener, given = Listener(), dict.fromkeys(texts, 1)
    for name, text in texts.items():
        stage.add(name, payload(text[:1], open=True), batch=False)
    while any(given[name] < len(text) for name, text in texts.items()):
        name = str(random.choice([name for name, text in texts.items() if given[name] < len(text)]))
        start = given[name]
        given[name] = end = min(len(texts[name]), start + int(random.integers(1, 5)))
        stage.extend(name, TinyText(text=texts[name][start:end]), final=end == len(texts[name]))
        for _ in range(int(random.integers(0, 4))):
            if stage.has_work():
                listener.step(stage)
    run(stage, listener)
    for name, frames in expected.items():
        np.testing.assert_array_equal(listener.frames(name), frames, err_msg=name)


def test_an_abort_while_it_waits_frees_it(stage: Stage) -> None:
    stage.add("open", payload(TEXT[:3], open=True), batch=False)
    run(stage, Listener())
    stage.abort("open")


def test_an_end_code_ends_it_before_its_text(stage: Stage) -> None:
    """Text for a request that has ended is ignored."""
    greedy = payload(TEXT, min_frames=0, max_frames=100, sampling=SamplingOptions(temperature=0.0))
    listener = Listener()
    for last in range(TEXT_VOCAB):
        name = f"r{last}"
        stage.add(name, replace(greedy, text=[last] * 40, open=True), batch=False)
        run(stage, listener)
        if listener.finished(name):
            break
        stage.abort(name)
    assert listener.finished(name)
    stage.extend(name, TinyText(text=[1]), final=True)


def test_text_after_the_end_fails_that_request(stage: Stage) -> None:
    stage.add("closed", payload(TEXT), batch=False)
    with pytest.raises(ProtocolViolation, match="complete"):
        stage.extend("closed", TinyText(text=[1]), final=False)


def test_text_beyond_the_deployment_fails_that_request(stage: Stage) -> None:
    stage.add("open", payload(TEXT, open=True), batch=False)
    with pytest.raises(InvalidRequest, match="212 positions, more than the 128"):
        stage.extend("open", TinyText(text=[1] * 200), final=False)
