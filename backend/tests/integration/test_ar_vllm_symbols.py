"""The installed vLLM still has what the AR stage relies on, in the form of the pinned release."""

from __future__ import annotations

import importlib.metadata

import pytest

from cantata.stages.ar.environment import prepare_environment
from cantata.stages.ar.vllm_symbols import VLLM_VERSION, list_moved_symbols

pytestmark = pytest.mark.vllm


def test_nothing_has_moved() -> None:
    prepare_environment()
    assert list_moved_symbols() == []


def test_the_fingerprints_are_of_the_pinned_release() -> None:
    requirements = importlib.metadata.requires("cantata") or []
    pins = [line for line in requirements if line.startswith("vllm")]
    assert len(pins) == 2
    assert all(f"=={VLLM_VERSION}." in pin for pin in pins)
