"""OpenAI's own SDK keeps files, and has batches of requests answered in the background."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types import Batch

from .conftest import Address
from .listening import KEY, LONG_TEXT, SENTENCES, assert_heard, assert_words, decode
from .speaking import speak

pytestmark = pytest.mark.e2e

SPEECH, TRANSCRIPTIONS = "/v1/audio/speech", "/v1/audio/transcriptions"
UNDERWAY = ("validating", "in_progress", "finalizing", "cancelling")


@pytest.fixture
def client(server: Address) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        yield client


def begin(client: openai.OpenAI, endpoint: str, **bodies: dict[str, Any]) -> Batch:
    """A batch of requests, by their ids."""
    lines = [
        json.dumps({"custom_id": id, "method": "POST", "url": endpoint, "body": body})
        for id, body in bodies.items()
    ]
    file = client.files.create(
        file=("requests.jsonl", "\n".join(lines).encode()),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3_600},
    )
    assert file.expires_at == file.created_at + 3_600
    return client.batches.create(
        input_file_id=file.id,
        endpoint=endpoint,  # type: ignore[arg-type]
        completion_window="24h",
        metadata={"for": "a test"},
        output_expires_after={"anchor": "created_at", "seconds": 7_200},
    )


def follow(client: openai.OpenAI, batch: Batch) -> Batch:
    """The batch at its end."""
    while batch.status in UNDERWAY:
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    return batch


def read(client: openai.OpenAI, file: str | None) -> dict[str, Any]:
    """The lines of a file by their ids."""
    assert file is not None
    lines = [json.loads(line) for line in client.files.content(file).text.splitlines()]
    return {line["custom_id"]: line for line in lines}


def test_speech(client: openai.OpenAI) -> None:
    said = {"model": "tts-1", "input": SENTENCES, "voice": "alloy"}
    batch = begin(client, SPEECH, a=said, b={**said, "response_format": "flac"}, c={"input": ""})
    done = follow(client, batch)
    assert (done.status, done.metadata) == ("completed", {"for": "a test"})
    assert done.request_counts is not None
    assert done.request_counts.to_dict() == {"total": 3, "completed": 2, "failed": 1}
    answers = read(client, done.output_file_id)
    assert answers.keys() == {"a", "b"}
    for answer in answers.values():
        assert_heard(*decode(base64.b64decode(answer["response"]["body"]["audio"])))
    failed = read(client, done.error_file_id)["c"]["response"]
    assert (failed["status_code"], failed["body"]["error"]["param"]) == (400, "input")
    output = client.files.retrieve(done.output_file_id or "")
    assert (output.purpose, output.status) == ("batch_output", "processed")
    assert output.expires_at == output.created_at + 7_200


def test_transcriptions(client: openai.OpenAI, server: Address) -> None:
    recording = client.files.create(file=("a.wav", speak(server)), purpose="user_data")
    in_line = {"input_audio": {"data": base64.b64encode(speak(server)).decode()}}
    done = follow(client, begin(client, TRANSCRIPTIONS, a={"file": recording.id}, b=in_line))
    answers = read(client, done.output_file_id)
    for id in ("a", "b"):
        assert_words(answers[id]["response"]["body"]["text"])


def test_what_is_not_valid_is_named_by_line(client: openai.OpenAI) -> None:
    file = client.files.create(file=("requests.jsonl", b"Hello.\n"), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
    )
    failed = follow(client, batch)
    assert failed.status == "failed"
    assert failed.errors is not None
    (problem,) = failed.errors.data or []
    assert (problem.line, problem.code) == (1, "invalid_json_line")
    with pytest.raises(openai.BadRequestError) as refused:
        client.files.create(file=("a.jsonl", b"{}"), purpose="fine-tune")
    assert refused.value.param == "purpose"
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve("file-none")


def test_a_batch_is_cancelled(client: openai.OpenAI) -> None:
    long = {"input": LONG_TEXT * 4}
    batch = begin(client, SPEECH, **{str(number): long for number in range(20)})
    while batch.status == "validating":
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    batch = client.batches.cancel(batch.id)
    assert batch.status == "cancelling"
    done = follow(client, batch)
    assert done.status == "cancelled"
    unanswered = read(client, done.error_file_id).values()
    assert {one["error"]["code"] for one in unanswered} == {"batch_cancelled"}


def test_lists_are_read_page_by_page(client: openai.OpenAI) -> None:
    files = [
        client.files.create(file=(f"{number}.txt", b"a"), purpose="user_data").id
        for number in range(3)
    ]
    found = [one.id for one in client.files.list(purpose="user_data", limit=2, order="desc")]
    assert found[:3] == files[::-1]
    batches = [one.id for one in client.batches.list(limit=1)]
    assert len(set(batches)) == len(batches)
    for id in files:
        assert client.files.delete(id).deleted
