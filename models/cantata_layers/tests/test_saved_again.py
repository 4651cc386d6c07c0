"""Checkpoints that today's libraries have loaded and saved again are read as the published ones.

Tokenizers and models are saved by transformers, pipelines of pictures by diffusers, in shards. What
a request's stages are given must be the same, and so must be the configuration and the tensors.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from cantata.config.plugins import load_plugins
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SpeechRequest
from cantata.contract.data.transcripts import TranscriptionRequest
from cantata.contract.model.conversation import calls_tools
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.chat_template import load_chat_template
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_layers.omni.tools import ToolTemplate
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer

TEXTS = ("Hello the world, how are you?", "Caf\u00e9 <|im_start|> 12,345\n\n\u4f60\u597d", "  ")
TOOL = '{"type": "function", "function": {"name": "weather", "parameters": {}}}'
TOKENIZER_FILES = (
    *("vocab.json", "merges.txt", "tokenizer_config.json", "tokenizer.json"),
    *("added_tokens.json", "special_tokens_map.json"),
)
OMNIS = {
    "qwen3-omni": "Qwen3OmniMoeForConditionalGeneration",
    "qwen2.5-omni": "Qwen2_5OmniForConditionalGeneration",
}
PLUGINS = {n: p for n, p in load_plugins().items() if p.write_random_checkpoint}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Random checkpoints in their published form, each written once."""
    written: dict[str, Path] = {}

    def write(name: str) -> Path:
        if name not in written:
            written[name] = tmp_path_factory.mktemp("published")
            writer = PLUGINS[name].write_random_checkpoint
            assert writer is not None
            writer(written[name])
        return written[name]

    return write


def save_tokenizers(source: Path, target: Path) -> int:
    """Save every tokenizer of a folder as transformers does today; how many there were."""
    from transformers import AutoTokenizer

    found = [file.parent.relative_to(source) for file in source.rglob("tokenizer_config.json")]
    for folder in found:
        if not (source / folder / "vocab.json").is_file():
            continue
        tokenizer = AutoTokenizer.from_pretrained(source / folder)
        for name in TOKENIZER_FILES:
            (target / folder / name).unlink(missing_ok=True)
        tokenizer.save_pretrained(target / folder)
        assert not (target / folder / "vocab.json").exists()
    return len(found)


def save_omni(source: Path, target: Path, kind: str) -> None:
    """Save a model in shards, its configuration, its processor's settings and its template."""
    import transformers
    from transformers import WhisperFeatureExtractor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    model = getattr(transformers, kind).from_pretrained(source)
    for file in (*target.glob("*.safetensors*"), target / "preprocessor_config.json"):
        file.unlink()
    model.save_pretrained(target, max_shard_size="400KB")
    # What a processor writes; the class itself needs torchvision.
    sections = {
        "feature_extractor": WhisperFeatureExtractor.from_pretrained(source).to_dict(),
        "image_processor": Qwen2VLImageProcessorPil.from_pretrained(source).to_dict(),
        "processor_class": "Qwen3OmniMoeProcessor",
    }
    (target / "processor_config.json").write_text(json.dumps(sections))
    template = target / "chat_template.json"
    (target / "chat_template.jinja").write_text(json.loads(template.read_text())["chat_template"])
    template.unlink()


@contextmanager
def saved_again(source: Path, target: Path) -> Iterator[Path]:
    shutil.copytree(source, target)
    try:
        yield target
    finally:
        shutil.rmtree(target)


def get_inputs(plugin: ModelPlugin, checkpoint: Path) -> list[bytes]:
    """What the stages of a request are given."""
    made: list[Any] = []
    if plugin.load_builder is not None:
        builder = plugin.load_builder(checkpoint)
        made += builder.build("r", SpeechRequest(TEXTS[0], builder.voices[0].id, seed=1))
    if plugin.load_chat_builder is not None:
        chat = plugin.load_chat_builder(checkpoint)
        tools = (TOOL,) if calls_tools(chat) else ()
        message = Message(Role.USER, (TextPart(TEXTS[0]),))
        made.append((tools, chat.build("r", ChatRequest((message,), seed=1, tools=tools))))
    if plugin.load_transcription_builder is not None:
        listener = plugin.load_transcription_builder(checkpoint)
        asked = TranscriptionRequest(listener.languages[0], TEXTS[0])
        inputs = listener.build("r", asked, listener.warm_up).inputs
        made += [one.tokens for one in inputs.values() if isinstance(one, ThinkerInput)]
    return [pickle.dumps(one) for one in made]


def load_tensors(folder: Path) -> dict[str, torch.Tensor]:
    found = {}
    for file in sorted(folder.rglob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (it is no mapping)
                found[f"{file.parent.relative_to(folder)}/{name}"] = tensors.get_tensor(name)
    return found


WITH_TOKENIZERS = sorted(
    n
    for n in PLUGINS
    if n in {*OMNIS, "bagel", "moss-tts-local", "qwen3-asr", "qwen3-tts", "qwen-image"}
)


@pytest.mark.parametrize("name", WITH_TOKENIZERS)
def test_a_tokenizer_that_was_saved_again_gives_the_same_ids(
    name: str, published: Callable[[str], Path], tmp_path: Path
) -> None:
    source = published(name)
    with saved_again(source, tmp_path / "again") as target:
        assert save_tokenizers(source, target)
        for file in source.rglob("vocab.json"):
            folder = file.parent.relative_to(source)
            before, after = (load_qwen_tokenizer(one / folder) for one in (source, target))
            for text in TEXTS:
                expected = before.encode(text, add_special_tokens=False).ids
                assert after.encode(text, add_special_tokens=False).ids == expected
            assert after.get_vocab(True) == before.get_vocab(True)
            assert {
                index: (token.content, token.special)
                for index, token in after.get_added_tokens_decoder().items()
            } == {
                index: (token.content, token.special)
                for index, token in before.get_added_tokens_decoder().items()
            }


@pytest.mark.parametrize("name", WITH_TOKENIZERS)
def test_a_request_gives_its_stages_the_same(
    name: str, published: Callable[[str], Path], tmp_path: Path
) -> None:
    source = published(name)
    with saved_again(source, tmp_path / "again") as target:
        save_tokenizers(source, target)
        if name in OMNIS:
            save_omni(source, target, OMNIS[name])
            before, after = load_tensors(source), load_tensors(target)
            assert before.keys() == after.keys()
            assert all(torch.equal(before[key], after[key]) for key in before)
            assert load_preprocessor_config(target) == load_preprocessor_config(source)
        assert get_inputs(PLUGINS[name], target) == get_inputs(PLUGINS[name], source)


def test_a_pipeline_of_pictures_that_diffusers_saved_again_draws_the_same(
    published: Callable[[str], Path], tmp_path: Path
) -> None:
    from diffusers import DiffusionPipeline

    from cantata.contract.data.pictures import ImageRequest

    source, target = published("qwen-image"), tmp_path / "again"
    DiffusionPipeline.from_pretrained(source).save_pretrained(target, max_shard_size="200KB")
    assert not list(target.rglob("vocab.json"))
    assert len(list(target.rglob("*.safetensors"))) > len(list(source.rglob("*.safetensors")))
    before, after = load_tensors(source), load_tensors(target)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    load = PLUGINS["qwen-image"].load_image_builder
    assert load is not None
    request = ImageRequest(TEXTS[0], (), 64, 64, 1)
    made = [pickle.dumps(load(one).build("r", request)) for one in (source, target)]
    assert made[0] == made[1]


TEMPLATE = "{% if tools %}<|im_start|>system\n<tool_call>{{ tools }}<|im_end|>\n{% endif %}"
PLACES: dict[str, dict[str, Any]] = {
    "jinja": {"chat_template.jinja": TEMPLATE},
    "json": {"chat_template.json": {"chat_template": TEMPLATE}},
    "tokenizer": {"tokenizer_config.json": {"chat_template": TEMPLATE}},
    "processor": {"processor_config.json": {"chat_template": TEMPLATE}},
    "named": {
        "tokenizer_config.json": {
            "chat_template": [
                {"name": "default", "template": "none"},
                {"name": "tool_use", "template": TEMPLATE},
            ]
        }
    },
    "beside": {
        "chat_template.jinja": "none",
        "additional_chat_templates/tool_use.jinja": TEMPLATE,
    },
    "newest first": {
        "chat_template.jinja": TEMPLATE,
        "chat_template.json": {"chat_template": "old"},
        "tokenizer_config.json": {"chat_template": "older"},
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_tools_are_found_wherever_a_template_is(place: str, tmp_path: Path) -> None:
    for name, content in PLACES[place].items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    assert load_chat_template(tmp_path)[0] == TEMPLATE
    assert ToolTemplate(tmp_path).has_tools


def test_a_folder_without_a_template_has_no_tools(tmp_path: Path) -> None:
    assert not ToolTemplate(tmp_path).has_tools


def test_an_old_tokenizer_s_added_tokens_have_a_file_of_their_own(
    published: Callable[[str], Path], tmp_path: Path
) -> None:
    source = published("qwen3-tts")
    with saved_again(source, tmp_path / "again") as target:
        config = json.loads((target / "tokenizer_config.json").read_text())
        added = config.pop("added_tokens_decoder")
        config["additional_special_tokens"] = [one["content"] for one in added.values()]
        (target / "tokenizer_config.json").write_text(json.dumps(config))
        ids = {token["content"]: int(index) for index, token in added.items()}
        (target / "added_tokens.json").write_text(json.dumps(ids))
        before, after = load_qwen_tokenizer(source), load_qwen_tokenizer(target)
        assert after.get_vocab(True) == before.get_vocab(True)
        for text in TEXTS:
            expected = before.encode(text, add_special_tokens=False).ids
            assert after.encode(text, add_special_tokens=False).ids == expected


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("tokenizer.json", "{", "not a readable tokenizer"),
        ("vocab.json", "{}", "no tokenizer.json, and no readable vocab.json and merges.txt"),
    ],
)
def test_a_damaged_tokenizer_is_named(file: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(ConfigError, match=says):
        load_qwen_tokenizer(tmp_path)
