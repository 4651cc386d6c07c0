"""The networks against diffusers' figures, the text encoder against transformers' own forward."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from cantata_models.sketch.tests.made_pictures import made_pictures
from cantata_models.sketch.tests.parity.small import (
    AUTOENCODER,
    GOLDENS,
    STEPS,
    TOKENS,
    TRANSFORMER,
    fill,
    fill_flat,
    inputs,
)
from cantata_models.sketch.training.examples import vocabulary_corpus
from cantata_models.sketch.training.networks.autoencoder import (
    Autoencoder,
    from_published,
    published_tensors,
)
from cantata_models.sketch.training.networks.transformer import Transformer, packed, unpacked
from cantata_models.sketch.training.picture_training import Drawer
from cantata_models.sketch.training.sampling import sigmas
from cantata_models.sketch.training.text_encoder import new_text_encoder
from cantata_models.sketch.training.words import DROPPED, CaptionPrompts, train_vocabulary


@pytest.fixture(scope="module")
def goldens() -> dict[str, Tensor]:
    return load_file(GOLDENS)


@pytest.fixture(scope="module")
def autoencoder() -> Autoencoder:
    network = Autoencoder(AUTOENCODER)
    network.load_state_dict(fill_flat(network.state_dict()))
    return network.eval()


@torch.no_grad()
def test_the_transformer_computes_what_diffusers_does(goldens: dict[str, Tensor]) -> None:
    network, given = Transformer(TRANSFORMER), inputs()
    fill(network)
    found = network(given["noisy"], given["times"], given["text"], given["mask"])
    torch.testing.assert_close(found, goldens["velocity"], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_decoder_computes_what_diffusers_does(
    goldens: dict[str, Tensor], autoencoder: Autoencoder
) -> None:
    found = autoencoder.decode(inputs()["latents"])
    torch.testing.assert_close(found, goldens["picture"], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_encoder_computes_what_diffusers_does(
    goldens: dict[str, Tensor], autoencoder: Autoencoder
) -> None:
    found = autoencoder.encode(inputs()["picture"])
    torch.testing.assert_close(found, goldens["mean"], rtol=1e-4, atol=1e-4)


def test_the_times_are_those_of_diffusers(goldens: dict[str, Tensor]) -> None:
    torch.testing.assert_close(sigmas(STEPS, TOKENS), goldens["sigmas"], rtol=1e-5, atol=1e-6)


def test_published_kernels_have_a_past_that_is_empty(autoencoder: Autoencoder) -> None:
    published = published_tensors(autoencoder)
    kernel = published["decoder.conv_in.weight"]
    assert kernel.shape[2:] == (3, 3, 3)
    assert not kernel[:, :, :2].any()
    assert published["decoder.mid_block.attentions.0.proj.weight"].dim() == 4
    back = from_published(published)
    assert all((back[name] == value).all() for name, value in autoencoder.state_dict().items())


def test_packing_is_undone_by_unpacking() -> None:
    latents = torch.randn(2, 8, 6, 6)
    assert (unpacked(packed(latents)) == latents).all()
    assert (packed(latents)[0, 0].view(8, 2, 2) == latents[0, :, :2, :2]).all()


@torch.no_grad()
def test_a_shared_beginning_changes_no_embedding(tmp_path: Path) -> None:
    train_vocabulary(vocabulary_corpus(made_pictures()), tmp_path)
    prompts = CaptionPrompts(tmp_path)
    torch.manual_seed(0)
    drawer = Drawer(Transformer(TRANSFORMER), new_text_encoder(prompts), prompts)
    captions = ["red disc", "a yellow square"]
    found, mask = drawer.text(captions)
    for row, caption in enumerate(captions):
        whole = drawer.text_encoder.model.language_model(
            input_ids=torch.tensor([prompts.ids(caption)])
        ).last_hidden_state
        torch.testing.assert_close(found[row][mask[row]], whole[0, DROPPED:], rtol=1e-4, atol=1e-5)
