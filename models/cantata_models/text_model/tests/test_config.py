"""Which folders are text models, and what they say of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cantata.config import load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata.pipeline.plan import find_services
from cantata_models.text_model.config import (
    find_architecture,
    is_text_model,
    list_architectures,
    load_settings,
)
from cantata_models.text_model.options import guess_reasoning_parser, guess_tool_parser
from cantata_models.text_model.plugin import PIPELINE, PLUGIN


def folder_with(path: Path, **files: Any) -> Path:
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def test_the_architectures_are_those_of_vllm_s_registry() -> None:
    from vllm.model_executor.models import registry

    kinds = ("TransformersForCausalLM", "TransformersMoEForCausalLM")
    borrowed = registry._TRANSFORMERS_SUPPORTED_MODELS.items()
    texts = {name for name, (_, kind) in borrowed if kind in kinds}
    assert list_architectures() == set(registry._TEXT_GENERATION_MODELS) | texts
    assert {"LlamaForCausalLM", "Qwen3ForCausalLM", "Phi3ForCausalLM"} <= list_architectures()
    assert {"SmolLM3ForCausalLM", "PhiForCausalLM", "Olmo3ForCausalLM"} <= texts


def test_any_of_them_is_located(tmp_path: Path) -> None:
    config = {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"]}
    assert locate(str(folder_with(tmp_path, config=config))).plugin is PLUGIN
    assert find_architecture(tmp_path) == "Phi3ForCausalLM"


def test_a_folder_of_another_plug_in_stays_its_own(tmp_path: Path) -> None:
    config = {"model_type": "qwen3_asr", "architectures": ["Qwen3ForCausalLM"]}
    assert locate(str(folder_with(tmp_path, config=config))).plugin.name == "qwen3-asr"


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "clip", "architectures": ["CLIPModel"]},
        {"model_type": "llama"},
        {"model_type": "llama", "architectures": 7},
    ],
)
def test_other_folders_are_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = folder_with(tmp_path, config=config)
    assert not is_text_model(folder)
    with pytest.raises(ConfigError, match="no plug-in loads"):
        locate(str(folder))


def test_every_end_counts_once(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        config={"eos_token_id": 9},
        generation_config={"eos_token_id": [2, 7], "temperature": 0.6, "top_k": 20},
        tokenizer_config={"eos_token": {"content": "<end>"}},
        tokenizer={"added_tokens": [{"id": 5, "content": "<end>"}, {"id": 7, "content": "x"}]},
    )
    settings = load_settings(folder)
    assert settings.end_tokens == (2, 7, 5)
    assert (settings.sampling.temperature, settings.sampling.top_k) == (0.6, 20)
    assert settings.sampling.top_p is None


def test_an_old_folder_ends_as_its_config_says(tmp_path: Path) -> None:
    settings = load_settings(folder_with(tmp_path, config={"eos_token_id": 9, "temperature": 5}))
    assert settings.end_tokens == (9,)
    assert settings.sampling.temperature is None


def test_a_damaged_value_is_named(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, config={}, generation_config={"temperature": "hot"})
    with pytest.raises(ConfigError, match=r"generation_config.json.*temperature"):
        load_settings(folder)


@pytest.mark.parametrize(
    ("template", "model_type", "tools", "thoughts"),
    [
        ("{{ tools }}<tool_call>{}</tool_call><think>", "qwen3", "hermes", "qwen3"),
        ("{{ tools }}<tool_call><function=", "qwen3_next", "qwen3_coder", None),
        ("{{ tools }}[TOOL_CALLS]", "mistral", "mistral", None),
        ("{{ tools }}<|python_tag|>", "llama", "llama3_json", None),
        ("<think>", "qwen2", None, "deepseek_r1"),
        ("<tool_call>", "gemma3_text", None, None),
    ],
)
def test_the_template_tells_the_parsers(
    template: str, model_type: str, tools: str | None, thoughts: str | None
) -> None:
    assert guess_tool_parser(template) == tools
    assert guess_reasoning_parser(template, model_type) == thoughts


def test_options_of_a_deployment_are_checked(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, config={"architectures": ["LlamaForCausalLM"]})
    deploy = yaml.safe_load(PLUGIN.deployment.read_text())
    file = tmp_path / "deploy.yaml"

    def write(options: dict[str, Any]) -> None:
        file.write_text(yaml.safe_dump({**deploy, "options": options}))

    write({"tool_parser": "hermes"})
    [plan] = find_services([str(folder)], [file])
    assert plan.located.plugin.load_chat_builder is not PLUGIN.load_chat_builder
    assert load_deployment(file, PIPELINE).options == {"tool_parser": "hermes"}
    write({"tool_praser": "hermes"})
    with pytest.raises(ConfigError, match=r"tool_praser.*valid keys.*tool_parser"):
        find_services([str(folder)], [file])
