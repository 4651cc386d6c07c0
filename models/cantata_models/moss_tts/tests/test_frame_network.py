"""The network that completes frames: its past does not change results, rows do not meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from cantata_models.moss_tts.config import MossConfig, load_local_config, load_nano_config
from cantata_models.moss_tts.frame_network import FrameNetwork, gelu_new
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    TINY_NANO,
    write_local,
    write_nano,
)
from threads import threads

WIDE = 1100
"""More than a thousand values: oneDNN has another kernel for a single such row."""
BOOKS = 12


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with threads(1):
        yield


def widened(config: MossConfig) -> MossConfig:
    local = replace(config.local, hidden_size=WIDE, heads=11, intermediate_size=WIDE + 13)
    return replace(config, num_codebooks=BOOKS, local=local)


@pytest.fixture(scope="module", params=["local", "nano"])
def network(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> FrameNetwork:
    folder = tmp_path_factory.mktemp(request.param)
    config: MossConfig = (
        load_local_config(write_local(folder, TINY_LOCAL, 1))
        if request.param == "local"
        else load_nano_config(write_nano(folder, TINY_NANO, 1))
    )
    torch.manual_seed(0)
    network = FrameNetwork(widened(config)).requires_grad_(False)
    for name, parameter in network.named_parameters():
        if parameter.ndim > 1:
            parameter.normal_(std=2 * parameter.shape[-1] ** -0.5)
        else:
            parameter.normal_(mean=float(name.endswith("weight")), std=0.2)
    return network


def likeliest(scores: torch.Tensor, book: int) -> torch.Tensor:
    return scores.argmax(-1)


def completed(network: FrameNetwork, hidden: torch.Tensor) -> torch.Tensor:
    begun = network.begin(hidden)
    return network.complete(begun, begun.code0_scores.argmax(-1), likeliest)


def test_a_code_follows_from_all_codes_before_it(network: FrameNetwork) -> None:
    """One pass over whole frames chooses the same codes."""
    hidden = torch.randn(5, WIDE)
    codes = completed(network, hidden)
    choice = network.local_text_lm_head.weight[:1].expand_as(hidden)
    before = [hidden, choice] if network._feeds_choice else [hidden]
    later = [network.audio_embeddings[book][codes[:, book]] for book in range(BOOKS - 1)]
    rows = torch.stack((*before, *later), dim=1)
    transformer = network.local_transformer
    outputs = transformer(rows, transformer.begin(hidden))[:, -BOOKS:]
    for book in range(BOOKS):
        scores = outputs[:, book] @ network.audio_embeddings[book].T
        assert torch.equal(scores.argmax(-1), codes[:, book])
    assert len({tuple(frame) for frame in codes.tolist()}) == 5


def test_the_choice_to_stop_sees_the_hidden_state_alone(network: FrameNetwork) -> None:
    hidden = torch.randn(3, WIDE)
    transformer = network.local_transformer
    output = transformer(hidden[:, None], transformer.begin(hidden))[:, 0]
    wanted = output @ network.local_text_lm_head.weight.T
    torch.testing.assert_close(network.begin(hidden).stop_scores, wanted)


@pytest.mark.parametrize("few", [1, 2, 3, 8])
def test_rows_do_not_see_each_other(network: FrameNetwork, few: int) -> None:
    """The number of rows has no effect on a bit either."""
    hidden = torch.randn(16, WIDE)
    scores: dict[int, list[torch.Tensor]] = {few: [], 16: []}
    for count, kept in scores.items():

        def watched(now: torch.Tensor, book: int, kept: list[torch.Tensor] = kept) -> torch.Tensor:
            kept.append(now[:few].clone())
            return now.argmax(-1)

        begun = network.begin(hidden[:count])
        kept += [begun.stop_scores[:few], begun.code0_scores[:few]]
        kept.append(network.complete(begun, begun.code0_scores.argmax(-1), watched)[:few])
    assert len(scores[few]) == BOOKS + 2
    for alone, company in zip(scores[few], scores[16], strict=True):
        assert torch.equal(alone, company)


def test_a_request_that_ends_leaves_the_others_alone(network: FrameNetwork) -> None:
    hidden = torch.randn(3, WIDE)
    whole = completed(network, hidden)
    begun = network.begin(hidden)
    code0 = begun.code0_scores.argmax(-1)
    code0[1] = network.audio_embeddings.shape[1]  # one past the codebook: the end
    frames = network.complete(begun, code0, likeliest)
    assert torch.equal(frames[[0, 2]], whole[[0, 2]])


def test_a_frame_is_embedded_codebook_by_codebook(network: FrameNetwork) -> None:
    codes = torch.randint(0, network.audio_embeddings.shape[1], (3, BOOKS))
    wanted = sum(network.audio_embeddings[book][codes[:, book]] for book in range(BOOKS))
    torch.testing.assert_close(network.embed(codes), torch.as_tensor(wanted))


def test_gelu_is_torch_s_and_place_has_no_effect() -> None:
    x = torch.cat((torch.linspace(-30, 30, 5001), torch.tensor([-1e4, -100.0, 0.0, 100.0, 1e4])))
    torch.testing.assert_close(
        gelu_new(x), functional.gelu(x, approximate="tanh"), rtol=2e-6, atol=1e-6
    )
    for start in range(1, 40):
        assert torch.equal(gelu_new(x[start:]), gelu_new(x)[start:])


def test_published_widths(tmp_path: Path) -> None:
    """Local has a position per codebook; Nano has one more, for its choice."""
    local = FrameNetwork(load_local_config(write_local(tmp_path / "local", TINY_LOCAL, 1)))
    nano = FrameNetwork(load_nano_config(write_nano(tmp_path / "nano", TINY_NANO, 1)))
    assert len(local.local_transformer.cos) == TINY_LOCAL.codebooks
    assert len(nano.local_transformer.cos) == TINY_NANO.codebooks + 1
