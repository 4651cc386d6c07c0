"""Text models behind the real server: their tokens are transformers', alone and in company."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import pytest_asyncio
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

from cantata.contract.chat_service import FinishReason, TextEnd
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart, Thought
from cantata.contract.model.conversation import AnswerParser, PlannedAnswer, Written
from cantata.pipeline.chat_model import PipelineChatModel
from cantata_models.text_model.chat_builder import TextModelBuilder
from cantata_models.text_model.random_checkpoint import KINDS, write_checkpoint
from cantata_models.text_model.tests.serving import QUESTIONS, VOICE, body, small
from served import started

pytestmark = pytest.mark.integration
asynchronous = pytest.mark.asyncio(loop_scope="module")

NUM_TOKENS = 48


class Recording:
    """An answer's parser that keeps the tokens."""

    def __init__(self, parser: AnswerParser, tokens: list[int]) -> None:
        self._parser, self._tokens = parser, tokens

    @property
    def thinking(self) -> bool:
        return self._parser.thinking

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Any:
        self._tokens.extend(tokens.tolist())
        pieces: list[Thought | Written] = list(self._parser.read(tokens, last=last))
        return pieces


class Recorder:
    """A served model whose answers' tokens are kept, by the question."""

    def __init__(self, model: PipelineChatModel, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.builder = model._builder
        assert isinstance(self.builder, TextModelBuilder)
        self._parser = self.builder.parser
        self._tokens: dict[str, list[int]] = {}
        self.builder.parser = self._record  # type: ignore[method-assign]

    def _record(self, request: ChatRequest, planned: PlannedAnswer) -> AnswerParser:
        tokens = self._tokens.setdefault(planned.request.request_id, [])
        return Recording(self._parser(request, planned), tokens)

    async def ask(self, question: str, **options: Any) -> tuple[list[int], FinishReason]:
        messages = (Message(Role.USER, (TextPart(question),)),)
        request = ChatRequest(messages, **{"max_tokens": NUM_TOKENS, "temperature": 0, **options})
        reason = None
        async with self.model.run(request) as answer:
            async for event in answer:
                if isinstance(event, TextEnd):
                    reason = event.reason
        assert reason is not None
        return self._tokens.pop(answer.request_id), reason

    def reference(self, question: str) -> list[int]:
        """What transformers makes of the same folder, without the end token."""
        tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)
        model: Any = AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32)
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        made = model.generate(**prompt, max_new_tokens=NUM_TOKENS, do_sample=False)[0]
        answer: list[int] = made[prompt["input_ids"].shape[1] :].tolist()
        return answer[:-1] if answer[-1] == tokenizer.eos_token_id else answer


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def recorder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Recorder]:
    folder = write_checkpoint(tmp_path_factory.mktemp("text"), request.param)
    async with started(small(folder)) as service:
        yield Recorder(service.chat_models["text-model"], folder)


@pytest.mark.thorough(every=3)
@asynchronous
async def test_greedy_tokens_are_transformers(recorder: Recorder) -> None:
    for question in QUESTIONS:
        tokens, _ = await recorder.ask(question)
        assert tokens == recorder.reference(question)


@pytest.mark.thorough(every=3)
@asynchronous
async def test_a_request_alone_equals_itself_in_company(recorder: Recorder) -> None:
    sampled = {"temperature": 0.8, "top_p": 0.9, "repetition_penalty": 1.1}
    alone = [await recorder.ask(q, seed=7, **sampled) for q in QUESTIONS]
    beside = [recorder.ask(q, seed=7, **sampled) for q in QUESTIONS]
    others = [recorder.ask(f"{number}?", seed=number, **sampled) for number in range(4)]
    together = await asyncio.gather(*beside, *others)
    assert together[: len(QUESTIONS)] == alone
    assert len({tuple(tokens) for tokens, _ in together}) > len(QUESTIONS)


@asynchronous
async def test_a_cancel_frees_everything(recorder: Recorder) -> None:
    messages = (Message(Role.USER, (TextPart("Go on."),)),)
    async with recorder.model.run(ChatRequest(messages, temperature=0)) as answer:
        await anext(aiter(answer))
    [stage] = recorder.model.orchestrator.stages.values()
    await stage.ask(30)
    assert stage.last_pong is not None
    assert set(stage.last_pong.counts.values()) == {0}


def test_a_stream_is_the_whole_answer_with_its_usage(url: str) -> None:
    whole = httpx.post(url, json=body(max_tokens=20), timeout=60).json()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    lines = httpx.post(url, json=body(max_tokens=20, **options), timeout=60).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    text = "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"])
    assert text == whole["choices"][0]["message"]["content"]
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    used, told = chunks[-1]["usage"], whole["usage"]
    assert [used[name] for name in counts] == [told[name] for name in counts]
    assert whole["usage"]["completion_tokens"] == 20
    assert whole["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        (
            {"messages": [{"role": "user", "content": "long " * 400}]},
            "context_length_exceeded",
            "messages",
        ),
        ({"messages": [{"role": "assistant", "content": "Hi."}]}, None, "messages"),
        (
            {"modalities": ["text", "audio"], "audio": {"voice": "nobody"}},
            "voice_not_found",
            "audio.voice",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            None,
            "messages[0].content[0].image_url.url",
        ),
    ],
    ids=["context", "template", "voice", "picture"],
)
def test_what_cannot_be_served_is_named(
    url: str, fields: dict[str, Any], code: str | None, param: str
) -> None:
    response = httpx.post(url, json=body(**fields), timeout=60)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param)
    assert code is None or error["code"] == code


def test_tools_reach_the_template(url: str) -> None:
    """The template describes them, so the prompt is longer."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    bare = httpx.post(url, json=body(max_tokens=1), timeout=60).json()["usage"]
    told = httpx.post(url, json=body(max_tokens=1, tools=[tool]), timeout=60).json()["usage"]
    assert told["prompt_tokens"] > bare["prompt_tokens"]


def test_composed_equals_separate(url: str) -> None:
    """The answer's text is that of a request without sound, and its sound that of a request for
    speech of that text."""
    fields = {"max_tokens": 60, "seed": 3}
    spoken = body(**fields, modalities=["text", "audio"], audio={"format": "pcm16"})
    audio = httpx.post(url, json=spoken, timeout=60).json()["choices"][0]["message"]["audio"]
    written = httpx.post(url, json=body(**fields), timeout=60).json()["choices"][0]["message"]
    assert audio["transcript"] == written["content"]
    speech = {"model": VOICE, "input": audio["transcript"], "response_format": "pcm", "seed": 3}
    alone = httpx.post(url.replace("chat/completions", "audio/speech"), json=speech, timeout=60)
    assert len(alone.content) > 24_000
    assert base64.b64decode(audio["data"]) == alone.content
