"""What callers may ask for, and the prompts that it becomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Codes
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import PipelineRequest, ReferenceAudio, SpeechRequest
from cantata_models.fish_speech import networks
from cantata_models.fish_speech.config import SAMPLE_RATE, load_config
from cantata_models.fish_speech.prompt import FishEncoderInput, FishTalkerInput
from cantata_models.fish_speech.random_checkpoint import TINY_S1, TINY_S2, write_checkpoint
from cantata_models.fish_speech.request_builder import load_s1_builder, load_s2_builder
from cantata_models.fish_speech.tests.parity.prompt_statement import s1_prompt, s2_prompt
from cantata_models.fish_speech.tests.parity.scenarios import recording

TEXTS = (
    "Hello.",
    "  Spaces   inside, and around. ",
    "[excited] Really? [laughing] (sighing) Yes!",
    "<|speaker:0|>Who is there?\n<|speaker:1|>The other one.",
    "2026\u5e74\uff0c\u4f60\u597d\uff01",
    "\U0001f600 x",
    "a | b <| c |>",
)


@pytest.fixture(scope="module")
def s2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("s2"), TINY_S2, 1)


@pytest.fixture(scope="module")
def s1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("s1"), TINY_S1, 1)


def laid_out(inputs: FishTalkerInput) -> tuple[list[int], list[int]]:
    """All tokens of a prompt, and in front of which frames stand."""
    tokens, places = list(inputs.tokens[: inputs.spoken_at]), []
    for turns in inputs.spoken:
        tokens += turns.tokens
        places.append(len(tokens))
        tokens += turns.end
    tokens += inputs.tokens[inputs.spoken_at :]
    return tokens, [place.at for place in inputs.recordings] + places


def reference(transcript: str | None, rate: int = SAMPLE_RATE, channels: int = 1) -> ReferenceAudio:
    samples = np.repeat(recording()[:, None], channels, axis=1)
    return ReferenceAudio(samples, rate, transcript)


def following(transcripts: Sequence[str]) -> dict[str, Any]:
    """The fields of a request that follows recordings with these transcripts."""
    if not transcripts:
        return {}
    first, *others = [reference(transcript) for transcript in transcripts]
    return {"reference": first, "more_references": tuple(others)}


def built(builder: Any, text: str = "Hello.", **fields: Any) -> PipelineRequest:
    request: PipelineRequest
    (request,) = builder.build("a", SpeechRequest(text, "default", **fields))
    assert request.request_id == "a-0"
    return request


def talker_input(builder: Any, text: str = "Hello.", **fields: Any) -> FishTalkerInput:
    inputs = built(builder, text, **fields).inputs["talker"]
    assert isinstance(inputs, FishTalkerInput)
    return inputs


@pytest.mark.parametrize(
    "transcripts",
    [(), ("We sat.",), ("<|speaker:2|>We sat.",), (" We  sat ",), ("We sat.", "Then it rained.")],
)
@pytest.mark.parametrize("text", TEXTS)
def test_prompts_are_the_statement_s(s2: Path, text: str, transcripts: tuple[str, ...]) -> None:
    inputs = talker_input(load_s2_builder(s2), text, **following(transcripts))
    stripped = [transcript.strip() for transcript in transcripts]
    assert laid_out(inputs) == s2_prompt(s2, text.strip(), stripped)


@pytest.mark.parametrize("transcripts", [(), ("We sat on the porch.",), ("We sat.", "It rained.")])
@pytest.mark.parametrize("text", TEXTS)
def test_s1_s_prompts_are_the_statement_s(
    s1: Path, text: str, transcripts: tuple[str, ...]
) -> None:
    if "<|speaker" in text:
        pytest.skip("special in this checkpoint's library, text in ours")
    inputs = talker_input(load_s1_builder(s1), text, **following(transcripts))
    assert laid_out(inputs) == s1_prompt(s1, text.strip(), transcripts)


def test_a_group_stands_behind_what_was_said(s2: Path) -> None:
    turns = ["<|speaker:0|>Hello.", "<|speaker:1|>Yes?", "<|speaker:0|>The other one."]
    asked = SpeechRequest(
        " ".join(turns), "default", seed=4, options={"chunk_length": 1}, **following(["We sat."])
    )
    pieces = load_s2_builder(s2).build("a", asked)
    assert [piece.request_id for piece in pieces] == ["a-0", "a-1", "a-2"]
    assert pieces[0].continuation is None
    said = [Codes(np.full((count, 10), count, np.int32)) for count in (3, 5)]
    for number, piece in enumerate(pieces):
        inputs = piece.inputs
        if number:
            assert piece.continuation is not None
            assert piece.continuation.earlier == ("a-0", "a-1")[:number]
            inputs = piece.continuation.inputs(said[:number])
        assert set(inputs) == {"encoder", "talker"}
        talker = inputs["talker"]
        assert isinstance(talker, FishTalkerInput)
        expected = s2_prompt(s2, turns[number], ["We sat."], turns[:number])
        assert laid_out(talker) == expected
        for turn, codes in zip(talker.spoken, said[:number], strict=True):
            np.testing.assert_array_equal(turn.codes, codes.values)
        assert talker.sampling.seed == 4 + number


def test_s1_speaks_every_text_in_one_go(s1: Path) -> None:
    built(load_s1_builder(s1), "<|speaker:0|>Hello. " * 30)


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"text": "Well <|im_end|> then."}, "input", r"'<\|im_end\|>' is a special token"),
        ({"text": "<|semantic:7|> no"}, "input", r"'<\|semantic:' is a special token"),
        ({"text": "<|speaker:0|><|speaker:1|>"}, "input", "nothing that can be spoken"),
        ({"text": "..."}, "input", "nothing that can be spoken"),
        ({"reference": reference(None)}, "ref_text", "needs the transcript of recording"),
        ({"reference": reference("  ")}, "ref_text", "needs the transcript of recording"),
        (following(["Yes.", " "]), "ref_text", "needs the transcript of recording 2"),
        ({"reference": reference("a <|voice|>")}, "ref_text", "special token"),
        ({"options": {"top_p": 0}}, "top_p", "greater than 0"),
        ({"options": {"top_k": -1}}, "top_k", "greater than or equal to 0"),
        ({"options": {"max_new_tokens": 1}}, "max_new_tokens", "greater than or equal to 2"),
        ({"options": {"repetition_penalty": 3}}, "repetition_penalty", "less than or equal to 2"),
        ({"options": {"chunk_length": 0}}, "chunk_length", "greater than or equal to 1"),
        ({"options": {"iterative_prompt": True}}, "iterative_prompt", "Extra inputs"),
    ],
)
def test_what_cannot_be_served_is_named(
    s2: Path, fields: dict[str, Any], param: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message) as refusal:
        built(load_s2_builder(s2), **{"text": "Hello.", **fields})
    assert refusal.value.param == param


def test_s1_has_neither_top_k_nor_groups(s1: Path) -> None:
    builder = load_s1_builder(s1)
    for option in ("top_k", "chunk_length"):
        assert option not in builder.capabilities.options
        with pytest.raises(InvalidRequest, match=option):
            built(builder, options={option: 5})


def test_a_recording_is_brought_to_the_codec_s_rate(s2: Path) -> None:
    builder = load_s2_builder(s2)
    for rate, channels in ((SAMPLE_RATE, 1), (SAMPLE_RATE, 2), (22_050, 1)):
        request = built(builder, reference=reference("Yes.", rate, channels))
        encoder = request.inputs["encoder"]
        assert isinstance(encoder, FishEncoderInput)
        (samples,) = encoder.recordings
        assert len(samples) == round(len(recording()) * SAMPLE_RATE / rate)
        if rate == SAMPLE_RATE:
            np.testing.assert_allclose(samples, recording(), atol=1e-7)
    assert "encoder" not in built(builder).inputs


def test_options_mean_what_they_say(s2: Path, s1: Path) -> None:
    asked = {"max_new_tokens": 40, "top_p": 0.5, "repetition_penalty": 1.7}
    for builder, penalty in ((load_s2_builder(s2), 1.0), (load_s1_builder(s1), 1.7)):
        inputs = talker_input(builder, seed=9, temperature=0.0, options=asked)
        assert inputs.max_frames == 39
        assert (inputs.sampling.seed, inputs.sampling.temperature) == (9, 0.0)
        assert (inputs.sampling.top_p, inputs.sampling.repetition_penalty) == (0.5, penalty)
        assert talker_input(builder).max_frames is None
    seeds = {talker_input(load_s2_builder(s2)).sampling.seed for _ in range(4)}
    assert len(seeds) == 4


def changed(folder: Path, source: Path, **fields: Any) -> Path:
    """A copy of a checkpoint's small files with another config.json."""
    for path in source.iterdir():
        if path.suffix not in (".pth", ".safetensors"):
            (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((source / "config.json").read_text())
    sections = {
        name: {**config[name], **value} for name, value in fields.items() if type(value) is dict
    }
    (folder / "config.json").write_text(json.dumps({**config, **fields, **sections}))
    return folder


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "dual_ar"}, "'dual_ar' is not served; valid: 'fish_qwen3_omni'$"),
        ({"text_config": {"dim": None}}, "text_config: dim is missing"),
        ({"text_config": {"attention_qkv_bias": True}}, "attention_qkv_bias true is not served"),
        ({"audio_decoder_config": {"vocab_size": 65}}, "65 codes, but the tokenizer has 64"),
        ({"text_config": {"vocab_size": 100}}, "has no room for token"),
        ({"text_config": {"n_layer": 0}}, "n_layer must be at least 1, not 0"),
        ({"text_config": {"n_head": 0}}, "n_head must be at least 1"),
        ({"text_config": {"n_head": 5}}, "5 heads cannot share 2 heads of keys evenly"),
        ({"audio_decoder_config": {"n_head": 3}}, "3 heads cannot share 2 heads of keys evenly"),
        ({"text_config": {"rope_base": 0}}, "rope_base must be positive"),
    ],
)
def test_another_config_is_rejected(
    s2: Path, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_s2_builder(changed(tmp_path, s2, **fields))


def test_what_a_config_does_not_say(s1: Path, tmp_path: Path) -> None:
    """As the published program has it."""
    named = ("n_local_heads", "norm_eps", "rope_base", "intermediate_size", "attention_qk_norm")
    fast = ("dim", "n_head", "n_local_heads", "head_dim", "intermediate_size", "attention_qk_norm")
    silent = dict.fromkeys([*named, *(f"fast_{name}" for name in fast)])
    config = load_config(changed(tmp_path, s1, **silent))
    assert (config.slow.heads, config.slow.kv_heads) == (4, 4)
    assert (config.slow.rope_theta, config.slow.rms_norm_eps) == (10_000.0, 1e-5)
    assert config.slow.intermediate_size == 256
    assert (config.slow_norms, config.fast_norms) == (None, None)
    own = {"layers": config.fast.layers, "vocab_size": config.fast.vocab_size}
    assert config.fast == replace(config.slow, **own)
    alone = load_config(changed(tmp_path, s1, n_local_heads=-1, fast_attention_qk_norm=True))
    assert (alone.slow.kv_heads, alone.slow_norms, alone.fast_norms) == (4, True, True)


def test_weights_as_training_saves_them(s1: Path, tmp_path: Path) -> None:
    tensors = torch.load(s1 / "model.pth", weights_only=True)
    trained = {f"model.{name}": tensor for name, tensor in tensors.items()}
    trained["model.audio_projector.weight"] = torch.zeros(2, 2)
    torch.save({"state_dict": trained}, tmp_path / "model.pth")
    config = load_config(s1)
    ours, theirs = (dict(networks._tensors(folder, config)) for folder in (tmp_path, s1))
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_damaged_tokenizer_is_rejected(s2: Path, s1: Path, tmp_path: Path) -> None:
    folder = changed(tmp_path, s1)
    ranks = (folder / "tokenizer.tiktoken").read_text().splitlines()
    for lines, message in (
        (ranks[1:], "a byte or a rank is missing"),
        ([*ranks, "not base64!"], "no readable tokens"),
        ([*ranks, ranks[-1].split()[0] + " 3"], "a byte or a rank is missing, or a rank occurs"),
    ):
        (folder / "tokenizer.tiktoken").write_text("\n".join(lines))
        with pytest.raises(ConfigError, match=message):
            load_s1_builder(folder)
    special = json.loads((folder / "special_tokens.json").read_text())
    for missing, message in (
        ("<|im_end|>", r"no special token '<\|im_end\|>'"),
        ("<|interleave|>", r"no special token '<\|interleave\|>'"),
        ("<|semantic:0|>", r"no special token '<\|semantic:0\|>'"),
        ("<|semantic:9|>", "are not consecutive"),
    ):
        left = {name: token for name, token in special.items() if name != missing}
        (folder / "special_tokens.json").write_text(json.dumps(left))
        (folder / "tokenizer.tiktoken").write_text("\n".join(ranks))
        with pytest.raises(ConfigError, match=message):
            load_s1_builder(folder)
    (tmp_path / "s2").mkdir()
    folder = changed(tmp_path / "s2", s2)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="added_tokens must be a list"):
        load_s2_builder(folder)
    added = json.loads((s2 / "tokenizer.json").read_text())["added_tokens"]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    with pytest.raises(ConfigError, match="not a readable tokenizer"):
        load_s2_builder(folder)
