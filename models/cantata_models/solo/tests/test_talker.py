"""The talker's backbone, its parts and its reference loop."""

from __future__ import annotations

import torch

from cantata_models.solo.networks.codec_encoder import ResidualQuantizer
from cantata_models.solo.tests.small_models import SMALL, random_codes, small_talker

FRAMES = 6


def test_generate_equals_the_full_forward() -> None:
    talker = small_talker()
    track = torch.randn(FRAMES, SMALL.talker.hidden_size)
    codes = talker.generate(track)
    assert codes.shape == (FRAMES, SMALL.codec.codebooks)
    with torch.inference_mode():
        hidden = talker.backbone(talker.input_rows(track, codes)[None])[0]
        assert torch.equal(talker.latent_head.quantize(talker.latent_head(hidden)), codes)


def test_the_backbone_is_causal() -> None:
    talker = small_talker()
    rows = torch.randn(1, FRAMES, SMALL.talker.hidden_size)
    changed = rows.clone()
    changed[:, 4:] += 1
    with torch.inference_mode():
        ours, theirs = talker.backbone(rows), talker.backbone(changed)
    torch.testing.assert_close(ours[:, :4], theirs[:, :4])
    assert not torch.allclose(ours[:, 4:], theirs[:, 4:])


def test_complete_is_a_plain_residual_quantizer() -> None:
    head = small_talker().latent_head
    quantizer = ResidualQuantizer(*head.codebooks.shape)
    quantizer.codebooks.copy_(head.codebooks)
    z = torch.randn(9, SMALL.codec.latent_size)
    code0 = head.code0_logits(z).argmax(dim=1)
    assert torch.equal(head.complete(z, code0), quantizer.encode(z))


def test_changed_codebooks_are_searched() -> None:
    head = small_talker().latent_head
    entries = head.codebooks[0]
    assert torch.equal(head.code0_logits(entries).argmax(dim=1), torch.arange(len(entries)))
    head.codebooks.copy_(head.codebooks.flip(1))
    backwards = torch.arange(len(entries)).flip(0)
    assert torch.equal(head.code0_logits(entries.flip(0)).argmax(dim=1), backwards)


def test_complete_keeps_the_sampled_first_code() -> None:
    head = small_talker().latent_head
    z, code0 = torch.randn(4, SMALL.codec.latent_size), torch.tensor([3, 0, 31, 7])
    assert torch.equal(head.complete(z, code0)[:, 0], code0)


def test_head_rows_do_not_depend_on_each_other() -> None:
    talker = small_talker()
    hidden = torch.randn(8, SMALL.talker.hidden_size)
    codes = random_codes(8)
    with torch.inference_mode():
        z, rows = talker.latent_head(hidden), talker.frame_embedding(codes)
        for index in range(8):
            one = slice(index, index + 1)
            assert torch.equal(talker.latent_head(hidden[one]), z[one])
            assert torch.equal(talker.frame_embedding(codes[one]), rows[one])
            ours, theirs = talker.latent_head.code0_logits(z), z[one]
            assert torch.equal(talker.latent_head.code0_logits(theirs), ours[one])


def test_parameters_carry_qwen3_names() -> None:
    names = {name for name, _ in small_talker().named_parameters() if name.startswith("layers.0.")}
    attention = {f"self_attn.{part}.weight" for part in ("q_proj", "k_proj", "v_proj", "o_proj")}
    attention |= {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}
    forward = {f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")}
    norms = {"input_layernorm.weight", "post_attention_layernorm.weight"}
    assert names == {f"layers.0.{name}" for name in attention | forward | norms}
