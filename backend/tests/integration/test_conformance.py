"""What every model must do, through the whole pipeline: with the weights that it ships, or with
random ones in its own format; on one machine, and with its stages on several."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import yaml
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel, load_plugins
from cantata.contract.data.errors import InvalidRequest, Overloaded, VoiceNotFound
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk, SpokenWord
from cantata.distributed.key import LinkKey
from cantata.distributed.stages.pipeline import StagesOnHosts
from cantata.pipeline.local import find_local_model
from cantata.pipeline.plan import ServicePlan, plan_service
from cantata.pipeline.service import PipelineService, create_service
from cantata.pipeline.speech_model import PipelineSpeechModel
from host_process import KEY
from stage_hosts import spread_over, stage_host
from tiers import LONG
from tiny_talker.latent_plugin import PLUGIN as TINY_LATENT
from tiny_voice.plugin import PLUGIN as TINY_VOICE

NOT_INSTALLED = {plugin.name: plugin for plugin in (TINY_LATENT, TINY_VOICE)}
"""The shapes that no installed model has: two AR stages; one ONNX file and no vLLM."""
PLUGINS = {
    name: plugin
    for name, plugin in {**load_plugins(), **NOT_INSTALLED}.items()
    if plugin.load_builder and (plugin.embedded_checkpoint or plugin.write_random_checkpoint)
}
ON_HOSTS = "-on-hosts"
SPREAD = PLUGINS if LONG else {TINY_LATENT.name, "solo"}
"""Whose stages stand on two hosts, too."""
WITH_RANDOM_WEIGHTS = [
    name
    for name, plugin in sorted(PLUGINS.items())
    if plugin.write_random_checkpoint and name not in NOT_INSTALLED
]
NIGHTLY = frozenset(WITH_RANDOM_WEIGHTS).difference(WITH_RANDOM_WEIGHTS[::3])
"""`pytest --short` leaves these out; tests of each model's own serve it, too."""
PLACED = [
    *(
        pytest.param(name, marks=pytest.mark.thorough if name in NIGHTLY else ())
        for name in sorted(PLUGINS)
    ),
    f"{TINY_LATENT.name}{ON_HOSTS}",
    *(
        pytest.param(f"{name}{ON_HOSTS}", marks=pytest.mark.thorough)
        for name in sorted(SPREAD)
        if name != TINY_LATENT.name
    ),
]
SpokenSamples = dict[tuple[str, int], NDArray[np.float32]]
MAX_FRAMES = 12
"""Random weights do not end a text by themselves. Half a second to a second, by model."""

SPEEDS = (1.0, 1.6, 0.6, 1.0, 4.0)
TEXTS = (
    "The morning train was late again.",
    "Could you tell me where the library is?",
    "Yes.",
    "She opened the letter, read it twice, and put it back on the table.",
    "Please leave the keys with the neighbour.",
    "We bought bread, cheese, two apples and a bottle of water.",
    "Nothing in the garden had been touched since the summer.",
    "A cold wind came down from the hills. It rattled the windows all night.",
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("served", PLACED, indirect=True, scope="module"),
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is served for each plug-in: its name, or a folder with random weights."""
    served = {}
    for name, plugin in PLUGINS.items():
        served[name] = name
        if plugin.write_random_checkpoint is not None:
            folder = tmp_path_factory.mktemp("checkpoint")
            plugin.write_random_checkpoint(folder)
            served[name] = str(folder)
    return served


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[str]]:
    """Addresses of two stage hosts."""
    with ExitStack() as stack:
        made = [stack.enter_context(stage_host(number)) for number in (3, 4)]
        for host in made:
            host.start()
        for host in made:
            host.wait_until_ready()
        yield [str(host.address) for host in made]


@dataclass(frozen=True)
class Served:
    """One model, and where its stages are."""

    name: str
    checkpoint: str
    hosts: Sequence[str]
    """Empty: this machine alone."""

    def service(self, deploy: Path | None = None) -> PipelineService:
        if plugin := NOT_INSTALLED.get(self.name):
            located = LocatedModel(plugin, Path(self.checkpoint))
            deployment = load_deployment(deploy or plugin.deployment, located.pipeline)
            plan = ServicePlan(located, located.pipeline, deployment.with_dtype("float32"))
        else:
            plan = plan_service(self.checkpoint, deploy, "float32")
        if not self.hosts:
            return create_service(plan)
        spread = replace(plan, deployment=spread_over(self.hosts, plan.deployment))
        return create_service(
            spread, remote_stages=partial(StagesOnHosts, key=LinkKey(KEY.encode()))
        )


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, checkpoints: dict[str, str]) -> Served:
    name, on_hosts, _ = request.param.partition(ON_HOSTS)
    hosts = request.getfixturevalue("hosts") if on_hosts else ()
    return Served(name, checkpoints[name], hosts)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(served: Served) -> AsyncIterator[PipelineSpeechModel]:
    async with running(served.service()) as service:
        yield service.get_model(served.name)


@asynccontextmanager
async def running(service: PipelineService) -> AsyncIterator[PipelineService]:
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


@pytest.fixture(scope="module")
def said_here() -> SpokenSamples:
    return {}


@pytest.fixture(scope="module")
def alone(served: Served, model: PipelineSpeechModel, said_here: SpokenSamples) -> Alone:
    return Alone(served, model, said_here)


def request(model: PipelineSpeechModel, number: int, text: str | None = None) -> SpeechRequest:
    """Another text, voice, seed and speed for each number; sampled, so that seeds matter."""
    bounded = "max_new_tokens" in model.capabilities.options
    return SpeechRequest(
        TEXTS[number % len(TEXTS)] if text is None else text,
        model.voices[number % len(model.voices)].id,
        speed=SPEEDS[number % len(SPEEDS)],
        seed=number,
        temperature=0.8,
        options={"max_new_tokens": MAX_FRAMES} if bounded else {},
    )


async def speak(
    model: PipelineSpeechModel, request: SpeechRequest, delay_s: float = 0.0
) -> NDArray[np.float32]:
    """Retries when rejected, as on a slow machine."""
    await asyncio.sleep(delay_s)
    try:
        async with model.run(request) as utterance:
            return np.concatenate([new.samples async for new in utterance])
    except Overloaded as busy:
        return await speak(model, request, busy.retry_after_s)


class Alone:
    """What each request of `request` says without company on one machine, asked once for all
    tests."""

    def __init__(self, served: Served, model: PipelineSpeechModel, said: SpokenSamples) -> None:
        self._served, self._model, self._said = served, model, said

    async def said(self, number: int) -> NDArray[np.float32]:
        key = (self._served.name, number)
        if key not in self._said and self._served.hosts:  # these tests run alone
            async with running(replace(self._served, hosts=()).service()) as here:
                model = here.get_model(self._served.name)
                for every in range(len(TEXTS)):
                    spoken = await speak(model, request(model, every))
                    self._said[self._served.name, every] = spoken
        if key not in self._said:
            self._said[key] = await speak(self._model, request(self._model, number))
        return self._said[key]


async def held(model: PipelineSpeechModel) -> dict[str, int]:
    return {
        f"{name}.{what}": count
        for name, stage in model.orchestrator.stages.items()
        for what, count in (await stage.get_counts()).items()
        if count
    }


async def test_it_speaks_audibly_and_without_clipping(model: PipelineSpeechModel) -> None:
    for voice in model.voices:
        samples = await speak(model, replace(request(model, 0), voice=voice.id))
        seconds = len(samples) / model.sample_rate
        assert samples.shape == (len(samples), model.channels)
        assert 0.4 < seconds < 6
        assert np.isfinite(samples).all()
        peak = np.abs(samples).max()
        # Random weights may clip.
        assert 0.05 < peak <= 1.0
        assert peak < 1.0 or PLUGINS[model.name].embedded_checkpoint is None


async def test_eight_at_once_equal_each_alone_bit_for_bit(
    model: PipelineSpeechModel, alone: Alone
) -> None:
    numbers = range(8)
    expected = [await alone.said(n) for n in numbers]
    together = await asyncio.gather(*(speak(model, request(model, n)) for n in numbers))
    for number in numbers:
        assert np.array_equal(expected[number], together[number]), number
    assert await held(model) == {}


async def test_one_after_the_other_and_an_abort_change_no_other_request_s_samples(
    model: PipelineSpeechModel, alone: Alone
) -> None:
    async def leave_early() -> None:
        async with model.run(request(model, 7)) as utterance:
            async for _ in utterance:
                return

    expected = [await alone.said(n) for n in range(7)]
    _, *others = await asyncio.gather(
        leave_early(), *(speak(model, request(model, n), delay_s=0.05 * n) for n in range(7))
    )
    for number, (usual, got) in enumerate(zip(expected, others, strict=True)):
        assert np.array_equal(usual, got), number  # type: ignore[arg-type]
    assert await held(model) == {}


async def test_seeds_reproduce_and_differ(model: PipelineSpeechModel, alone: Alone) -> None:
    first, base = await alone.said(0), request(model, 0)
    again, other = [await speak(model, r) for r in (base, replace(base, seed=12345))]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


async def test_sound_flows_before_the_end_is_made(model: PipelineSpeechModel) -> None:
    """In one of six attempts at least, each with a text as long as those before it together: on a
    busy machine the stages may end a short one before this process gets its next turn."""
    bounded = "max_new_tokens" in model.capabilities.options
    for attempt in range(6):
        text = " ".join([TEXTS[3]] * (1 if bounded else 2**attempt))
        async with model.run(request(model, 3, text)) as utterance:
            chunks = aiter(utterance)
            first = await anext(chunks)
            still_made = await held(model)
            rest = [new async for new in chunks]
        assert len(first.samples) / model.sample_rate < 0.5
        assert len(rest) >= 3
        if still_made:
            return
    pytest.fail("all sound was made before the first chunk came, six times")


@pytest.mark.thorough(every=4)  # each starts another server; the mode is the pipeline's own
async def test_batch_mode_says_the_same(
    model: PipelineSpeechModel, alone: Alone, served: Served, tmp_path: Path
) -> None:
    plugin = PLUGINS[model.name]
    settings = yaml.safe_load(plugin.deployment.read_text(encoding="utf-8"))
    deploy = tmp_path / "deploy.yaml"
    deploy.write_text(yaml.safe_dump({**settings, "async_chunk": False}), encoding="utf-8")
    async with running(served.service(deploy)) as service:
        batch = service.get_model(model.name)
        for number in (1, 3):
            expected = await alone.said(number)
            assert np.array_equal(await speak(batch, request(batch, number)), expected)


SPOKEN_HERE = (
    replace(SpeechRequest("Hello.", ""), seed=0),
    replace(SpeechRequest("Is anybody there?", ""), seed=3, speed=1.4),
    replace(SpeechRequest(TEXTS[3], ""), seed=5, temperature=0.9),
    replace(SpeechRequest(TEXTS[7], ""), seed=6, speed=0.7),
    SpeechRequest(f"{TEXTS[2]} [pause 0.4s] {TEXTS[7]} {TEXTS[0]} [pause 1s] The end.", ""),
)


async def test_without_a_server_it_says_the_same(
    model: PipelineSpeechModel, served: Served
) -> None:
    """Samples and word times, in every voice: `cantata say` against stage processes with vLLM."""
    local = None if model.name in NOT_INSTALLED else find_local_model(served.checkpoint)
    if local is None:
        pytest.skip("this model speaks from stage processes alone")
    assert await asyncio.to_thread(local.load)
    for number, asked in enumerate(SPOKEN_HERE):
        request = replace(asked, voice=model.voices[number % len(model.voices)].id)
        async with model.run(request) as utterance:
            from_stages = [chunk async for chunk in utterance]
        here = [chunk async for chunk in local.speak(local.plan(request))]
        assert np.array_equal(joined(here), joined(from_stages)), request
        words = [
            [word for chunk in chunks for word in chunk.words] for chunks in (here, from_stages)
        ]
        assert words[0] == words[1], request


def collect_words(chunks: list[SpeechChunk]) -> list[SpokenWord]:
    return [word for chunk in chunks for word in chunk.words]


def joined(chunks: list[SpeechChunk]) -> NDArray[np.float32]:
    return np.concatenate([chunk.samples for chunk in chunks])


@pytest.mark.parametrize("text", ["   ", "...", "\N{GRINNING FACE}", "\n", "\u2014"])
async def test_a_text_without_words_is_a_short_silence(
    model: PipelineSpeechModel, text: str
) -> None:
    samples = await speak(model, request(model, 0, text))
    assert 0.1 <= len(samples) / model.sample_rate <= 0.5
    assert not samples.any()
    assert await held(model) == {}


@pytest.mark.parametrize("text", ["", "x" * 100_001])
async def test_text_that_cannot_be_spoken_is_rejected(
    model: PipelineSpeechModel, text: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        await speak(model, request(model, 0, text))
    assert refusal.value.param == "input"
    assert await held(model) == {}


async def test_unknown_voices_are_rejected_with_the_valid_ones(model: PipelineSpeechModel) -> None:
    with pytest.raises(VoiceNotFound, match=model.voices[0].id):
        model.get_voice("nobody")
    for alias in model.voices[0].aliases:
        assert model.get_voice(alias.upper()) == model.voices[0]
