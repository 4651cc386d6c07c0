"""The codec is its statement's, and keeps the streaming contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.fish_speech.codec import CodecTensors, load_decoder
from cantata_models.fish_speech.config import SAMPLE_RATE, SAMPLES_PER_FRAME
from cantata_models.fish_speech.encoder import FishFrameEncoder
from cantata_models.fish_speech.random_checkpoint import (
    OTHER_S1,
    TINY_S1,
    TINY_S2,
    write_checkpoint,
)
from cantata_models.fish_speech.tests import codec_checks
from cantata_models.fish_speech.tests.parity.codec_statement import CodecStatement
from cantata_models.fish_speech.tests.parity.scenarios import recording
from recorded_codec import check_same
from threads import threads

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield write_checkpoint(tmp_path_factory.mktemp("s2"), TINY_S2, 1)


@pytest.fixture(scope="module")
def s1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("s1"), TINY_S1, 4)


def test_streamed_sound_is_the_statement_s(checkpoint: Path) -> None:
    codec_checks.check_decoded(checkpoint)


def test_s1_s_sound_is_the_statement_s(s1: Path) -> None:
    codec_checks.check_decoded(s1)


def test_semantic_codes_that_the_codec_lacks_are_its_last(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, OTHER_S1, 4)
    codes = codec_checks.frames(folder, 12)
    codes[:, 0] = torch.arange(OTHER_S1.codec.semantic - 6, OTHER_S1.codec.semantic + 6)
    ours = codec_checks.decode(folder, codes, 5)
    theirs = CodecStatement(folder).decode(codes).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=codec_checks.TOLERANCE)


def test_a_recording_s_codes_are_the_statement_s(checkpoint: Path) -> None:
    codec_checks.check_encoded(checkpoint)


def test_the_recording_of_the_scenarios_too(s1: Path) -> None:
    codec_checks.check_encoded(s1, seconds=1.1)


@pytest.mark.parametrize("chunks", [(1,), (2, 3), (1, 7)])
def test_streaming_equals_the_whole_to_the_last_bit(
    checkpoint: Path, chunks: tuple[int, ...]
) -> None:
    codes = codec_checks.frames(checkpoint, 78)
    whole = codec_checks.decode(checkpoint, codes, 78)
    assert np.array_equal(codec_checks.decode(checkpoint, codes, *chunks), whole)


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_row_does_not_depend_on_its_batch(checkpoint: Path, chunk: int) -> None:
    decoder, batch = load_decoder(checkpoint, CPU), 5
    codes = torch.stack([codec_checks.frames(checkpoint, 4 * chunk, row) for row in range(batch)])
    state, slots = decoder.init_state(7), torch.tensor([6, 0, 3, 1, 5])
    parts = [decoder.decode(state, slots, part) for part in torch.split(codes, chunk, 1)]
    together = torch.cat(parts, 1)
    for row in range(batch):
        alone = codec_checks.decode(checkpoint, codes[row], chunk)
        assert np.array_equal(alone, together[row, :, 0].numpy())


def test_a_slot_is_new_after_reset_and_others_are_not(checkpoint: Path) -> None:
    decoder = load_decoder(checkpoint, CPU)
    codes = codec_checks.frames(checkpoint, 8).expand(2, -1, -1)
    state, both = decoder.init_state(2), torch.arange(2)
    first = decoder.decode(state, both, codes)
    decoder.reset(state, torch.tensor([1]))
    second = decoder.decode(state, both, codes)
    assert torch.equal(second[1], first[1])
    assert not torch.equal(second[0], first[0])


def test_streams_sound_the_same_from_recorded_steps(checkpoint: Path) -> None:
    check_same(lambda: load_decoder(checkpoint, CPU), seeds=1)


def test_a_frame_is_2048_samples(checkpoint: Path) -> None:
    decoder = load_decoder(checkpoint, CPU)
    assert (decoder.sample_rate, decoder.samples_per_frame) == (SAMPLE_RATE, SAMPLES_PER_FRAME)
    encoder = FishFrameEncoder(checkpoint, CPU)
    assert encoder.samples_per_frame == SAMPLES_PER_FRAME
    for samples, count in ((1, 1), (2048, 1), (2049, 2), (5 * 2048, 5)):
        assert encoder.encode(torch.from_numpy(recording()[:samples])).shape == (count, 10)


def test_a_damaged_codec_is_named(checkpoint: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((checkpoint / name).read_bytes())
    with pytest.raises(ConfigError, match=r"codec\.pth: not a readable pickle"):
        load_decoder(tmp_path, CPU)
    tensors = torch.load(checkpoint / "codec.pth", weights_only=True)
    for missing, found in (
        ("decoder.model.3.block.2.block.0.alpha", "block.0.alpha' is missing"),
        ("quantizer.quantizer.quantizers.4.in_proj.weight_g", "weight_g' is missing"),
        ("quantizer.post_module.norm.weight", "norm.weight' is missing"),
    ):
        torch.save({k: v for k, v in tensors.items() if k != missing}, tmp_path / "codec.pth")
        with pytest.raises(ConfigError, match=found):
            load_decoder(tmp_path, CPU)
    name = "quantizer.upsample.1.1.pwconv1.weight"
    torch.save({**tensors, name: tensors[name][1:]}, tmp_path / "codec.pth")
    with pytest.raises(ConfigError, match=r"pwconv1.weight' must be \[512, 128\]"):
        load_decoder(tmp_path, CPU)


def saved(source: Path, folder: Path, tensors: dict[str, torch.Tensor]) -> Path:
    """A checkpoint's config and tokenizer with another codec."""
    for path in source.iterdir():
        if path.suffix != ".pth":
            (folder / path.name).write_bytes(path.read_bytes())
    torch.save(tensors, folder / "codec.pth")
    return folder


@pytest.mark.parametrize(
    ("changed", "change", "found"),
    [
        ("post_module.layers.0.attention.wo.weight", None, "not of heads of 64"),
        ("post_module.layers.0.attention.wqkv.weight", lambda t: t[:-64], "not of heads of 64"),
        ("decoder.model.0.conv.parametrizations.weight.original0", lambda t: t[1:], "a length of"),
        ("quantizer.upsample.0.0.conv.weight", lambda t: t[0], "must have 3 axes"),
        ("quantizer.upsample.1.0.conv.weight", lambda t: t[..., :1], "1024 samples for a frame"),
        ("quantizer.quantizers.8.codebook.weight", None, "9 codebooks, the talker 10"),
    ],
)
def test_a_codec_of_another_kind_is_named(
    checkpoint: Path,
    tmp_path: Path,
    changed: str,
    change: Callable[[torch.Tensor], torch.Tensor] | None,
    found: str,
) -> None:
    tensors = torch.load(checkpoint / "codec.pth", weights_only=True)
    (name,) = (each for each in tensors if each.endswith(changed))
    if change is None:
        del tensors[name]
    else:
        tensors[name] = change(tensors[name])
    with pytest.raises(ConfigError, match=found):
        load_decoder(saved(checkpoint, tmp_path, tensors), CPU)


def test_a_codec_as_its_training_saves_it(checkpoint: Path, tmp_path: Path) -> None:
    tensors = torch.load(checkpoint / "codec.pth", weights_only=True)
    trained = {f"generator.{name}": tensor for name, tensor in tensors.items()}
    folder = saved(checkpoint, tmp_path, {"state_dict": trained})  # type: ignore[dict-item]
    codes = codec_checks.frames(checkpoint, 3)
    ours = codec_checks.decode(folder, codes, 3)
    np.testing.assert_array_equal(ours, codec_checks.decode(checkpoint, codes, 3))


def test_sizes_follow_from_shapes(checkpoint: Path) -> None:
    tensors = CodecTensors(checkpoint, ("quantizer.", "encoder."))
    frame = tensors.transformer("quantizer.post_module", 128)
    wave = tensors.transformer("encoder.block.4.block.5", 512)
    assert (frame.layers, frame.heads, frame.kv_heads, frame.hidden_size) == (2, 2, 2, 128)
    assert (frame.intermediate_size, frame.window) == (96, 128)
    assert (wave.layers, wave.window) == (1, 512)
