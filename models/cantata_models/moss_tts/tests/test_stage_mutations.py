"""The goldens are effective for the stages: each fault in a list fails a scenario or a recording.

The networks' own faults are in `test_talker_mutations.py` and `test_codec_mutations.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from cantata_models.moss_tts import request_builder, splitting
from cantata_models.moss_tts.config import MossConfig
from cantata_models.moss_tts.prompt import MossPrompt, MossTalkerInput
from cantata_models.moss_tts.request_options import get_sampling
from cantata_models.moss_tts.tests.parity.scenarios import Model, scenario_named
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, Case
from cantata_models.moss_tts.tests.stage_checks import GAIN, check_encoder, check_speech
from cantata_models.moss_tts.tests.stage_driver import MossCheckpoints, MossStages
from faults import Faults, Inject

pytestmark = pytest.mark.vllm

fault = Faults[MossStages]()


@fault("continuation", "nano_clone_in_parts")
def it_never_stops(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    talker = type(loaded.network)
    scores = talker.stop_scores
    go_on = lambda self: scores(self).sort(descending=True).values  # noqa: E731
    patch.setattr(talker, "stop_scores", go_on)


@fault("continuation", "nano_clone_in_parts")
def stop_and_go_on_are_swapped(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    talker = type(loaded.network)
    scores = talker.stop_scores
    patch.setattr(talker, "stop_scores", lambda self: scores(self).flip(1))


@fault("continuation", "nano_clone")
def frames_are_fed_back_in_the_slot_of_the_caller(
    loaded: MossStages, patch: pytest.MonkeyPatch
) -> None:
    config: MossConfig = loaded.network._config
    tokens = structs.replace(config.tokens, assistant_slot=config.tokens.user_slot)
    patch.setattr(loaded.network, "_config", replace(config, tokens=tokens))


@fault("continuation", "nano_clone")
def frames_are_not_fed_back(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    talker = type(loaded.network)
    embed = talker.embed_frames
    patch.setattr(talker, "embed_frames", lambda self, frames: embed(self, frames) * 0)


@fault("continuation", "nano_continuation")
def the_decoder_is_not_primed(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        request_builder,
        "MossTalkerInput",
        lambda **given: MossTalkerInput(**{**given, "continues": False}),
    )


@fault("clone", "nano_clone")
def a_recording_is_left_out_of_the_prompt(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    rows = MossPrompt.rows
    patch.setattr(
        MossPrompt,
        "rows",
        lambda prompt, frames, *sizes: rows(prompt, [f[:0] for f in frames], *sizes),
    )


@fault("nano_clone", "penalty")
def only_the_first_codebook_is_penalized(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:

    def weaker(*given: Any) -> Any:
        return replace(get_sampling(*given), residual_repetition_penalty=None)

    patch.setattr(request_builder, "get_sampling", weaker)


@fault("continuation", "nano_continuation")
def the_transcript_is_left_out(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(request_builder, "joined", lambda transcript, text: text)


@fault("instruction", "language", "duration_alone")
def nothing_is_said_about_the_speech(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    nothing = lambda builder, asked: None  # noqa: E731
    patch.setattr(request_builder.LocalRequestBuilder, "_described", nothing)


@fault("nano_clone_in_parts")
def a_clone_is_not_split(loaded: MossStages, patch: pytest.MonkeyPatch) -> None:
    whole = lambda text, *limits: (splitting.MossTextPart(text, 0.0),)  # noqa: E731
    patch.setattr(request_builder, "split_text", whole)


@fault.each
def test_a_fault_fails_the_goldens(
    name: str,
    inject: Inject[MossStages],
    checkpoints: MossCheckpoints,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = scenario_named(name)
    inject(checkpoints.of(scenario.model, scenario.seed), monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check_speech(checkpoints, scenario)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_another_level_fails_the_recordings_goldens(
    case: Case, checkpoints: MossCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Local's recordings left as they are, or Nano's made louder."""
    encoder = checkpoints.of(Model(case.name), case.checkpoint_seed).encoder
    louder = lambda samples: samples * GAIN  # noqa: E731
    as_it_is = lambda samples: samples  # noqa: E731
    model: Any = encoder._model  # type: ignore[attr-defined]
    monkeypatch.setattr(model, "_prepare", as_it_is if case.name == "local" else louder)
    with pytest.raises(AssertionError):
        check_encoder(checkpoints, case)
