"""What the tests of text models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata.pipeline.plan import plan_service
from cantata_models.text_model.random_checkpoint import write_checkpoint
from cantata_models.text_model.tests.serving import VOICE, small
from served import served_plans


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a tiny Llama and the embedded voice: its route of chat completions."""
    folder = write_checkpoint(tmp_path_factory.mktemp("text"), "llama")
    plans = [plan_service(VOICE), small(folder)]
    with served_plans(plans, tmp_path_factory.mktemp("voices")) as url:
        yield f"{url}/v1/chat/completions"
