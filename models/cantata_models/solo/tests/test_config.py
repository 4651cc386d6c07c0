"""The checkpoint's config and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.solo import checkpoint
from cantata_models.solo.config import SoloConfig, load_config, save_config
from cantata_models.solo.networks.codec_encoder import CodecEncoder
from cantata_models.solo.tests.small_models import SMALL, random_codes, small_decoder, small_talker


def test_config_survives_a_round_trip(tmp_path: Path) -> None:
    save_config(SMALL, tmp_path)
    assert load_config(tmp_path) == SMALL


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"talkers": {}}, "config.json: unknown talkers; valid keys: model_type, talker, text"),
        ({"talker": {"width": 3}}, "config.json: talker: unknown width; valid keys: hidden_size"),
        ({"talker": {"layers": "six"}}, "talker: layers must be int, not 'six'"),
        ({"talker": {"heads": 5}}, "multiple of talker.kv_heads"),
        ({"voices": {}}, "voices must be a list, not {}"),
        ({"voices": [{"id": "x"}]}, r"voices\[0\]: name is missing"),
        ({"phones": ["AA"]}, "phones must be exactly AA AE"),
        ({"model_type": "other"}, "model_type must be 'cantata_solo'"),
        ([], "holds no JSON object"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, value: object, message: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(value))
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path)


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    talker, decoder, encoder = small_talker(), small_decoder(), CodecEncoder(SMALL.codec)
    size = checkpoint.save_checkpoint(tmp_path, SMALL, talker, decoder, encoder)
    assert size == sum(p.stat().st_size for p in tmp_path.glob("*.safetensors"))
    loaded = checkpoint.load_codec_decoder(tmp_path)
    codes = random_codes(1, 3)
    torch.testing.assert_close(
        loaded.decode_all(codes), decoder.decode_all(codes), rtol=0, atol=0.02
    )
    track = torch.randn(4, SMALL.talker.hidden_size)
    loaded_talker = checkpoint.load_talker(tmp_path)
    assert loaded_talker.generate(track).shape == (4, SMALL.codec.codebooks)
    assert loaded_talker.text_track.out_norm.weight.dtype == torch.float32
    _, quantizer = checkpoint.load_codec_encoder(tmp_path)
    assert torch.equal(quantizer.codebooks, loaded.codebooks)


def test_missing_weights_say_how_to_make_them(tmp_path: Path) -> None:
    save_config(SMALL, tmp_path)
    with pytest.raises(FileNotFoundError, match="make train-voice"):
        checkpoint.load_talker(tmp_path)


def test_config_file_is_plain_json(tmp_path: Path) -> None:
    save_config(SMALL, tmp_path)
    text = (tmp_path / "config.json").read_text()
    assert set(json.loads(text)) == set(SoloConfig.__struct_fields__)
