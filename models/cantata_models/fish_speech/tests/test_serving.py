"""Serving a checkpoint over HTTP gives exactly what the statements say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cantata_models.fish_speech.config import SAMPLE_RATE, SAMPLES_PER_FRAME
from cantata_models.fish_speech.random_checkpoint import write_checkpoint
from cantata_models.fish_speech.tests.parity.codec_statement import CodecStatement
from cantata_models.fish_speech.tests.parity.prompt_statement import s2_prompt
from cantata_models.fish_speech.tests.parity.scenarios import (
    SECONDS,
    SHAPES,
    FishScenario,
    recording,
    scenario_named,
)
from cantata_models.fish_speech.tests.parity.talker_statement import SpokenBefore, TalkerStatement
from served import served
from sounds import data_url, sound_file
from speech_client import SpeechClient

pytestmark = pytest.mark.vllm

FRAMES = 6


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("s2"), SHAPES["s2"], 1)


@pytest.fixture(scope="module")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechClient]:
    with served(checkpoint, tmp_path_factory.mktemp("voices")) as url:
        yield SpeechClient(url, {"max_new_tokens": FRAMES + 1, "voice": "default"})


def encode_recording(samples: NDArray[np.float32]) -> bytes:
    return sound_file(samples[:, None], SAMPLE_RATE, subtype="FLOAT")


def quote(samples: NDArray[np.float32]) -> str:
    return data_url(encode_recording(samples))


def greedy(checkpoint: Path, scenario: FishScenario) -> NDArray[np.float64]:
    """[N]: the statements' sound of a greedy text, group after group, frame after frame."""
    talker, codec = TalkerStatement(checkpoint), CodecStatement(checkpoint)
    seconds = SECONDS[: len(scenario.transcripts)]
    frames = [codec.encode(torch.from_numpy(recording(each)))[0] for each in seconds]
    sounds, groups = [], scenario.groups or (scenario.text,)
    for number, text in enumerate(groups):
        prompt, places = s2_prompt(checkpoint, text, scenario.transcripts, groups[:number])
        codes = _greedy_codes(talker, prompt, list(zip(places, frames, strict=True)))
        frames.append(codes)
        sounds.append(codec.decode(codes).numpy())
    return np.concatenate(sounds)


def _greedy_codes(
    talker: TalkerStatement, prompt: list[int], context: list[tuple[int, torch.Tensor]]
) -> torch.Tensor:
    """[T, Q]"""
    codes = torch.zeros(0, talker.books, dtype=torch.long)
    for _ in range(FRAMES):
        first, last = talker.slow_scores(
            prompt, context, SpokenBefore(codes[:, 0] + talker.begin, codes)
        )
        frame = torch.zeros(talker.books, dtype=torch.long)
        frame[0] = first[-1].argmax() - talker.begin
        for book in range(1, talker.books):
            frame[book] = talker.frame_scores(last[-1], frame)[book - 1].argmax()
        codes = torch.cat((codes, frame[None]))
    return codes


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("name", ["speakers", "recording", "last_group"])
def test_what_is_heard_is_what_the_statements_say(
    server: SpeechClient, checkpoint: Path, name: str
) -> None:
    scenario = scenario_named(name)
    fields: dict[str, Any] = {}
    if scenario.transcripts:
        recordings = [recording(seconds) for seconds in SECONDS[: len(scenario.transcripts)]]
        fields["ref_audio"] = [quote(samples) for samples in recordings]
        fields["ref_text"] = scenario.transcripts
    if scenario.max_bytes is not None:
        fields["chunk_length"] = scenario.max_bytes
    sound = server.hear(input=scenario.text, temperature=0, **fields)
    assert len(sound) == 2 * FRAMES * SAMPLES_PER_FRAME * max(1, len(scenario.groups))
    samples = np.frombuffer(sound, "<i2") / 32768
    assert np.abs(samples).max() > 0.05
    np.testing.assert_allclose(samples, greedy(checkpoint, scenario), rtol=0, atol=1e-4)


def test_listings_tell_what_it_can_do(server: SpeechClient) -> None:
    model = server.describe()
    assert (model["id"], model["sample_rate"]) == ("fish-speech-s2", SAMPLE_RATE)
    assert model["capabilities"]["references"]
    assert model["capabilities"]["max_references"] == 4
    assert set(model["capabilities"]["options"]) == {
        *("top_k", "top_p", "repetition_penalty", "max_new_tokens", "chunk_length")
    }


def test_directions_reach_the_model(server: SpeechClient) -> None:
    """Brackets are no markup of the server's; a pause is, and it is silence."""
    fields = {"seed": 4, "temperature": 0.8}
    plain = server.hear(input="On the table.", **fields)
    whispered = server.hear(input="[whisper] On the table.", **fields)
    assert plain != whispered
    tagged = server.hear(input="<|speaker:1|>On the table.", **fields)
    assert len({plain, whispered, tagged}) == 3


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"input": "Well <|im_end|> then."}, "input", "special token"),
        ({"ref_audio": quote(recording())}, "ref_text", "transcript"),
        ({"top_p": 2}, "top_p", "less than or equal to 1"),
        ({"max_new_tokens": 100_000}, None, "more than the 4096 of this deployment"),
        ({"voice": "nobody"}, "voice", "default"),
    ],
)
def test_what_cannot_be_served_is_refused(
    server: SpeechClient, fields: dict[str, Any], param: str | None, message: str
) -> None:
    server.assert_refused(param, message, **{"input": "Hello.", **fields})
    assert server.hear(input="Hello.", seed=1)


def test_an_uploaded_voice_speaks_as_the_same_recording_does(server: SpeechClient) -> None:
    ada = server.upload(encode_recording(recording(1.5)), ref_text="On the porch.")
    fields = {"input": "Hello there.", "seed": 3}
    own = server.hear(**fields, voice=ada)
    audio = quote(recording(1.5))
    assert own == server.hear(**fields, ref_audio=audio, ref_text="On the porch.")
    assert own != server.hear(**fields, ref_audio=audio, ref_text="In the garden.")
    assert own != server.hear(**fields)
    server.delete(ada)
