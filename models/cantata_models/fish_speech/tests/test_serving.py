"""Serving a checkpoint over HTTP gives exactly what the statements say."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
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

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

FRAMES = 6


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("s2"), SHAPES["s2"], 1)


@pytest.fixture(scope="module")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(checkpoint, tmp_path_factory.mktemp("voices")) as url:
        yield url


def post(url: str, **fields: Any) -> httpx.Response:
    body = {"response_format": "pcm", "max_new_tokens": FRAMES + 1, "voice": "default", **fields}
    return httpx.post(f"{url}/v1/audio/speech", json=body, timeout=120)


def heard(url: str, **fields: Any) -> bytes:
    response = post(url, **fields)
    assert response.status_code == 200, response.text
    return response.content


def data_url(samples: NDArray[np.float32], rate: int = SAMPLE_RATE) -> str:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="FLOAT")
    return "data:audio/wav;base64," + base64.b64encode(file.getvalue()).decode()


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


@pytest.mark.parametrize("name", ["speakers", "recording", "last_group"])
def test_what_is_heard_is_what_the_statements_say(server: str, checkpoint: Path, name: str) -> None:
    scenario = scenario_named(name)
    fields: dict[str, Any] = {}
    if scenario.transcripts:
        recordings = [recording(seconds) for seconds in SECONDS[: len(scenario.transcripts)]]
        fields["ref_audio"] = [data_url(samples) for samples in recordings]
        fields["ref_text"] = scenario.transcripts
    if scenario.max_bytes is not None:
        fields["chunk_length"] = scenario.max_bytes
    sound = heard(server, input=scenario.text, temperature=0, **fields)
    assert len(sound) == 2 * FRAMES * SAMPLES_PER_FRAME * max(1, len(scenario.groups))
    samples = np.frombuffer(sound, "<i2") / 32768
    assert np.abs(samples).max() > 0.05
    np.testing.assert_allclose(samples, greedy(checkpoint, scenario), rtol=0, atol=1e-4)


def test_listings_tell_what_it_can_do(server: str) -> None:
    (model,) = httpx.get(f"{server}/v1/audio/models", timeout=60).json()["models"]
    assert (model["id"], model["sample_rate"]) == ("fish-speech-s2", SAMPLE_RATE)
    assert model["capabilities"]["references"]
    assert model["capabilities"]["max_references"] == 4
    assert set(model["capabilities"]["options"]) == {
        *("top_k", "top_p", "repetition_penalty", "max_new_tokens", "chunk_length")
    }


def test_directions_reach_the_model(server: str) -> None:
    """Brackets are no markup of the server's; a pause is, and it is silence."""
    fields = {"seed": 4, "temperature": 0.8}
    plain = heard(server, input="On the table.", **fields)
    whispered = heard(server, input="[whisper] On the table.", **fields)
    assert plain != whispered
    tagged = heard(server, input="<|speaker:1|>On the table.", **fields)
    assert len({plain, whispered, tagged}) == 3


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"input": "Well <|im_end|> then."}, "input", "special token"),
        ({"ref_audio": data_url(recording())}, "ref_text", "transcript"),
        ({"top_p": 2}, "top_p", "less than or equal to 1"),
        ({"max_new_tokens": 100_000}, None, "more than the 4096 of this deployment"),
        ({"voice": "nobody"}, "voice", "default"),
    ],
)
def test_what_cannot_be_served_is_refused(
    server: str, fields: dict[str, Any], param: str | None, message: str
) -> None:
    response = post(server, **{"input": "Hello.", **fields})
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["param"] == param
    assert message in error["message"]
    assert heard(server, input="Hello.", seed=1)


def test_an_uploaded_voice_speaks_as_the_same_recording_does(server: str) -> None:
    file = base64.b64decode(data_url(recording(1.5)).partition(",")[2])
    upload = httpx.post(
        f"{server}/v1/audio/voices",
        data={"name": "Ada", "consent": "true", "ref_text": "On the porch."},
        files={"audio_sample": ("ada.wav", file, "audio/wav")},
        timeout=60,
    )
    assert upload.status_code in (200, 201), upload.text
    fields = {"input": "Hello there.", "seed": 3}
    own = heard(server, **fields, voice=upload.json()["id"])
    audio = data_url(recording(1.5))
    assert own == heard(server, **fields, ref_audio=audio, ref_text="On the porch.")
    assert own != heard(server, **fields, ref_audio=audio, ref_text="In the garden.")
    assert own != heard(server, **fields)
    deleted = httpx.delete(f"{server}/v1/audio/voices/{upload.json()['id']}", timeout=60)
    assert deleted.status_code == 200
