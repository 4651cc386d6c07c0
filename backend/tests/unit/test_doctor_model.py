"""`cantata doctor --model`: what is said of a model and of its decoder's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from cantata.cli import doctor, doctor_model
from cantata.cli.app import app
from cantata.cli.doctor import Verdict, _check_weights
from cantata.config.plugins import list_embedded_models, load_plugins
from cantata.stages.common.device import free_bytes
from running_sum import RunningSumDecoder

EMBEDDED = "solo"


class LargeDecoder(RunningSumDecoder):
    slot_bytes = 500_000_000


def test_an_embedded_model_is_ready() -> None:
    known, decoder = doctor_model.check_model(EMBEDDED, None)
    assert (known.verdict, decoder.verdict) == (Verdict.OK, Verdict.OK)
    assert "talker (ar)" in known.found
    assert "slots of little memory" in decoder.found


@pytest.mark.parametrize("name", list_embedded_models())
def test_the_weights_that_ship_are_found(name: str) -> None:
    check = _check_weights(load_plugins()[name])
    assert check.verdict is Verdict.OK
    assert "weight files" in check.found


def test_a_model_without_a_decoder_of_sound_is_ready_too() -> None:
    plugins = load_plugins()
    drawing = next(name for name in list_embedded_models() if plugins[name].load_image_builder)
    (known,) = doctor_model.check_model(drawing, None)
    assert known.verdict is Verdict.OK
    assert "denoise (diffusion)" in known.found


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    (check,) = doctor_model.check_model(str(tmp_path), None)
    assert check.failed
    assert "no readable config.json" in check.found


@pytest.mark.parametrize(("free", "slots"), [(1_700_000_000, 3), (64_000_000_000, None)])
def test_memory_of_the_slots_is_compared_with_what_is_free(
    monkeypatch: pytest.MonkeyPatch, free: int, slots: int | None
) -> None:
    monkeypatch.setattr(doctor_model, "load_decoder", lambda *_: LargeDecoder())
    monkeypatch.setattr(doctor_model, "free_bytes", lambda _: free)
    _, check = doctor_model.check_model(EMBEDDED, None)
    assert "slots x 500.0 MB" in check.found
    assert check.failed == (slots is not None)
    if slots is not None:
        assert check.advice == f"deploy decoder with at most {slots} slots"


def test_free_memory_is_the_machine_s() -> None:
    assert free_bytes(torch.device("cpu")) > 0


@pytest.mark.parametrize("engine", ["vllm", "graphs"])
def test_a_deployment_without_vllm_does_not_ask_for_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = load_plugins()[EMBEDDED].deployment.read_text(encoding="utf-8")
    file = tmp_path / "deploy.yaml"
    file.write_text(own.replace("engine: vllm", f"engine: {engine}"), encoding="utf-8")
    here = doctor.installed
    monkeypatch.setattr(doctor, "installed", lambda name: None if "vllm" in name else here(name))
    monkeypatch.setattr(doctor, "has_shared_library", lambda name: "numa" not in name)
    monkeypatch.setattr(doctor, "check_weights", list)
    said = CliRunner().invoke(app, ["doctor", "--model", EMBEDDED, "--deploy", str(file)]).output
    assert ("To be fixed: vLLM, libnuma" in said) == (engine == "vllm"), said


def test_what_is_not_known_asks_for_vllm(tmp_path: Path) -> None:
    assert doctor_model.needs_vllm(str(tmp_path), None)
    assert not doctor_model.needs_vllm(list_embedded_models()[0], None), "a voice of one network"
