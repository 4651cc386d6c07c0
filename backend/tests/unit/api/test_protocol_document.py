"""docs/protocol.md: every example is valid, every message and body has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_service import FakeService
from pydantic import BaseModel
from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
)

from cantata.api import schemas, voice_schemas
from cantata.api.adapters import (
    deepgram_listen_messages,
    deepgram_messages,
    elevenlabs_dictionaries,
    elevenlabs_messages,
    kokoro_fastapi,
)
from cantata.api.app import create_app
from cantata.api.batches import objects as batch_objects
from cantata.api.chat import answers, body, conversation, response
from cantata.api.chat import messages as chat_messages
from cantata.api.images import answers as image_answers
from cantata.api.images import body as image_body
from cantata.api.jobs import body as job_body
from cantata.api.jobs import objects as job_objects
from cantata.api.routes import health, lexicons, provenance
from cantata.api.schemas import WireModel
from cantata.api.settings import ServerSettings
from cantata.api.speech import messages
from cantata.api.speech import whole as speech_whole
from cantata.api.transcription import answers as transcription_answers
from cantata.api.transcription import body as transcription_body
from cantata.audio.formats import FORMATS
from cantata.documents.document import MAX_CHARACTERS
from cantata.jobs.batch_input import MAX_CUSTOM_ID_CHARACTERS, MAX_LINES
from cantata.media import images, video
from cantata.speech_input.recordings import MAX_RECORDING_S

DOCUMENT = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json (\w+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def types() -> dict[str, type[BaseModel]]:
    return {
        name: value
        for module in (
            schemas,
            voice_schemas,
            health,
            lexicons,
            provenance,
            messages,
            body,
            answers,
            image_body,
            image_answers,
            job_body,
            job_objects,
            batch_objects,
            deepgram_messages,
            deepgram_listen_messages,
            elevenlabs_dictionaries,
            elevenlabs_messages,
            kokoro_fastapi,
            transcription_answers,
            transcription_body,
        )
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, WireModel)
    }


def members(union: object) -> set[str]:
    return {member.__name__ for member in get_args(get_args(union)[0])}


def check_part(given: Any, whole: Any) -> None:
    """An example shows what the server reads: no key that it would ignore; defaults may be
    left out."""
    if isinstance(given, dict):
        assert given.keys() <= whole.keys()
        for key, value in given.items():
            check_part(value, whole[key])
    elif isinstance(given, list):
        assert len(given) == len(whole)
        for one, other in zip(given, whole, strict=True):
            check_part(one, other)
    else:
        assert given == whole


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_example_is_valid(name: str, example: str) -> None:
    model = types()[name]
    parsed = model.model_validate_json(example)
    check_part(json.loads(example), json.loads(parsed.model_dump_json(by_alias=True)))


def test_every_message_and_body_has_an_example() -> None:
    shown = {name for name, _ in EXAMPLES}
    assert members(messages.ClientMessage) | members(messages.ServerMessage) <= shown
    bodies = {"SpeechBody", "SpeechAudioDelta", "SpeechAudioDone", "SpeechAudioError", "ErrorBody"}
    bodies |= {"SpeechAudioTimestamps", "SpeechAudioVerification"}
    bodies |= {"BatchBody", "BatchResult", "BatchFailure"}
    bodies |= {"ChatBody", "ChatCompletion", "ChatCompletionChunk"}
    bodies |= {"JobBody", "JobObject", "FileObject", "CreateBatchBody", "BatchObject"}
    bodies |= {"GenerationBody", "EditBody", "ImagesAnswer"}
    bodies |= {"PartialImage", "CompletedImage", "DrawingProgress", "ThoughtDelta"}
    bodies |= {"TranscriptionAnswer", "VerboseTranscription"}
    bodies |= {"TranscriptTextDelta", "TranscriptTextDone"}
    bodies |= {"ModelList", "AudioModelList", "VoiceList", "Health", "ReplicaHealth", "Readiness"}
    assert bodies <= shown


def test_every_message_of_the_adapters_has_an_example() -> None:
    shown = {name for name, _ in EXAMPLES}
    assert members(deepgram_messages.DeepgramClientMessage) <= shown
    answers = {"Metadata", "Flushed", "Cleared", "DeepgramWarning", "DeepgramError"}
    bodies = {"DeepgramSpeakBody", "DeepgramErrorBody"}
    assert answers | bodies <= shown
    assert members(deepgram_listen_messages.ListenClientMessage) <= shown
    answers = {"ListenResults", "SpeechStartedMessage", "UtteranceEndMessage", "ListenMetadata"}
    assert answers | {"ListenUrlBody", "ListenAnswer"} <= shown
    sockets = {"StreamText", "ContextText", "ElevenLabsAudio", "SocketError"}
    bodies = {"SynthesisBody", "AudioWithTimestamps", "ElevenLabsVoices", "ElevenLabsErrorBody"}
    assert sockets | bodies <= shown
    assert {"CaptionedBody", "CaptionedSpeech"} <= shown


@pytest.mark.parametrize(
    ("side", "kinds"),
    [
        (
            "client",
            (
                *(Describe, Ping, Synthesize, SynthesizeStart, SynthesizeChunk, SynthesizeStop),
                *(Transcribe, AudioStart, AudioChunk, AudioStop),
            ),
        ),
        (
            "server",
            (
                *(Info, Pong, AudioStart, AudioChunk, AudioStop, SynthesizeStopped),
                *(TranscriptStart, TranscriptChunk, Transcript, TranscriptStop, Error),
            ),
        ),
    ],
)
def test_wyoming_events_are_what_its_own_package_reads(side: str, kinds: tuple[Any, ...]) -> None:
    (block,) = re.findall(rf"^```json wyoming {side}\n(.*?)^```$", DOCUMENT, re.M | re.S)
    events = [json.loads(line) for line in block.splitlines()]
    for event, kind in zip(events, kinds, strict=True):
        assert kind.is_type(event["type"])
        read = kind.from_event(Event(event["type"], event.get("data", {}), b""))
        check_part(event.get("data", {}), read.event().data)


def test_messages_are_distinguished_by_their_type() -> None:
    adapters = {
        **dict.fromkeys(members(messages.ClientMessage), messages.CLIENT_MESSAGES),
        **dict.fromkeys(members(messages.ServerMessage), messages.SERVER_MESSAGES),
    }
    for name, example in EXAMPLES:
        if name in adapters:
            assert type(adapters[name].validate_json(example)).__name__ == name  # type: ignore[attr-defined]


def test_every_route_and_setting_is_documented() -> None:
    app = create_app(FakeService(), ServerSettings())
    for path in app.openapi()["paths"]:
        assert path.replace("{name}", "{id}") in DOCUMENT
    defaults = ServerSettings()
    assert f"within {defaults.socket_config_timeout_s:g} s" in DOCUMENT
    assert f"{defaults.socket_idle_timeout_s:g} s without a message" in DOCUMENT
    assert f"At most {defaults.max_pending_utterances} utterances" in DOCUMENT
    assert f"over {defaults.max_message_bytes >> 10} KiB" in DOCUMENT
    assert f"over {defaults.max_body_bytes >> 20} MiB" in DOCUMENT
    assert f"Up to {schemas.MAX_BATCH_REQUESTS} texts" in DOCUMENT
    assert f"at most {schemas.MAX_BATCH_INPUT_CHARACTERS} characters" in DOCUMENT
    assert f"| `messages` | 1 to {chat_messages.MAX_MESSAGES} |" in DOCUMENT
    assert f"a list of up to {chat_messages.MAX_PARTS} parts" in DOCUMENT
    assert f"together may have {conversation.MAX_CHARACTERS:,} characters" in DOCUMENT
    assert f"at most {conversation.MAX_MEDIA_PARTS} in all messages" in DOCUMENT
    assert f"a text or up to {body.MAX_STOPS}," in DOCUMENT
    assert f"| `prompt` | 1 to {image_body.MAX_PROMPT_CHARACTERS:,} characters" in DOCUMENT
    assert f"| `n` | 1 to {image_body.MAX_PICTURES} pictures" in DOCUMENT
    assert f"see below; 0 to {image_body.MAX_PARTIAL_IMAGES} |" in DOCUMENT
    assert f"up to {image_body.MAX_DEADLINE_S:,.0f}. A request" in DOCUMENT
    most = transcription_body.MAX_PROMPT_CHARACTERS
    assert f"| `prompt` | a text of up to {most} characters" in DOCUMENT
    assert (
        f"{defaults.max_recording_bytes >> 20} MiB and {MAX_RECORDING_S / 3600:g} hours" in DOCUMENT
    )
    jobs = defaults.jobs.limits
    assert f"at most {jobs.max_source_bytes >> 20} MiB and {MAX_CHARACTERS:,}" in DOCUMENT
    assert f"has its {jobs.per_owner} jobs" in DOCUMENT
    assert f"take more than {jobs.max_bytes >> 30} GiB" in DOCUMENT
    assert f"a file of requests ({jobs.max_batch_bytes >> 20} MiB)" in DOCUMENT
    assert f"what requests name ({jobs.max_file_bytes >> 20} MiB)" in DOCUMENT
    assert f"may have {jobs.files_per_owner:,} files and {jobs.per_owner} batches" in DOCUMENT
    assert f"at most {MAX_LINES:,} in all" in DOCUMENT
    assert f"`custom_id` has 1 to {MAX_CUSTOM_ID_CHARACTERS} characters" in DOCUMENT
    media = defaults.media
    assert f"over white. {media.max_bytes >> 20} MiB in all |" in DOCUMENT
    assert f"may have {media.max_bytes >> 20} MiB" in DOCUMENT
    assert f"take {media.max_decoded_bytes >> 20} MiB once" in DOCUMENT
    assert f"and {media.work_s:g} s to load and decode" in DOCUMENT
    assert f"| {media.max_audio_s:g} s |" in DOCUMENT
    assert f"More than {media.max_image_pixels / 1e6:.1f} million pixels" in DOCUMENT
    assert f"up to {images.MAX_DECODED_PIXELS // 1_000_000} million pixels" in DOCUMENT
    assert f"up to {video.MAX_S:g} s and 3840" in DOCUMENT
    assert f"at least {video.MIN_FRAMES} and at most {video.MAX_FRAMES}," in DOCUMENT
    assert f"file of more than {response.MAX_FILE_BYTES >> 20} MiB is an error" in DOCUMENT
    assert f"a file of more than {speech_whole.MAX_FILE_BYTES >> 20} MiB" in DOCUMENT


def test_every_format_is_listed_with_its_sample_rates() -> None:
    for one in FORMATS.values():
        pattern = rf"^\| `{one.name}`.* \| `{one.media_type}` \|.*$"
        (row,) = re.findall(pattern, DOCUMENT, re.MULTILINE)
        if one.name != "aac":
            rates = "any" if one.sample_rates is None else ", ".join(map(str, one.sample_rates))
            assert f"| {rates} |" in row
    assert FORMATS["aac"].sample_rates == FORMATS["mp3"].sample_rates
