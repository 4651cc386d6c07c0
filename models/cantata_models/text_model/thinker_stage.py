"""A text model of vLLM's own for the AR stage: tokens in and out.

Letters: N rows, R requests, D hidden size, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import LoadConfig, VllmConfig
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
from vllm.model_executor.models.interfaces import has_inner_state, is_hybrid
from vllm.model_executor.models.utils import init_vllm_registered_model
from vllm.transformers_utils.config import get_config

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.embedding_source import EmbeddingSource, StaticEmbeddings
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.exact_products import make_products_exact
from cantata_layers.omni.thinker_rows import ThinkerRows
from cantata_models.text_model.config import find_architecture, load_settings
from cantata_models.text_model.inputs import TextModelInput
from cantata_models.text_model.token_guide import TokenGuides


class TextModelThinker(nn.Module, Talker):
    """A talker whose frames are tokens and whose network is vLLM's own."""

    num_codebooks = 1
    frame_period_s = None
    shardable = True

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        checkpoint = Path(model_config.model)
        self._model_config = model_config
        self._device = torch.device(vllm_config.device_config.device)
        ends = load_settings(checkpoint).end_tokens
        self.end_code: int | None = ends[0] if ends else None
        self._guides: TokenGuides | None = None
        self.other_ends: torch.Tensor
        # Uploaded once: in a step, it would wait for the device.
        self.register_buffer(
            "other_ends", torch.tensor(ends[1:], dtype=torch.int64), persistent=False
        )
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        name = find_architecture(checkpoint)
        # WHY: vLLM's own start does so. Networks whose layers are all alike read it nowhere else.
        vllm_config.cache_config.sliding_window = _find_window(model_config)
        self.network: Any = init_vllm_registered_model(vllm_config, architectures=[name])
        if is_hybrid(self.network) or has_inner_state(self.network):
            raise ConfigError(f"{checkpoint}: {name} keeps a state beside attention; not served")

    @classmethod
    def vllm_config(cls, checkpoint: Path) -> Any:
        """Read the checkpoint's own, as vLLM does."""
        try:
            config = get_config(str(checkpoint), trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{checkpoint}: vLLM cannot read its config: {error}") from error
        return config

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        fields: Mapping[str, Any] = cls.vllm_config(checkpoint).to_dict()
        return fields

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the parameters by vLLM's own loader."""
        loader = DefaultModelLoader(LoadConfig(load_format="auto", use_tqdm_on_load=False))
        try:
            loader.load_weights(self.network, self._model_config)
        except (KeyError, RuntimeError, ValueError) as error:
            raise ConfigError(f"{checkpoint}: vLLM cannot load the weights: {error}") from error
        self._check_width(checkpoint)
        if make_products_exact(self.network):
            self.min_rows = 1
        ends = load_settings(checkpoint).end_tokens
        # WHY now: the first answer in a grammar would hold up all others for a second.
        self._guides = (
            TokenGuides(checkpoint, self._model_config.get_vocab_size(), ends) if ends else None
        )

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        hidden: torch.Tensor = self.network(
            input_ids=None,
            positions=positions,
            intermediate_tensors=None,
            inputs_embeds=inputs_embeds,
        )
        return hidden

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        scores: torch.Tensor = self.network.compute_logits(hidden_states)
        return scores

    def open(self, inputs: TextModelInput) -> EmbeddingSource:
        width, positions = self._model_config.get_hidden_size(), self._model_config.max_model_len
        source = ThinkerRows(self.embed_frames, self._device, width, positions).open(inputs)
        prompt = source.prompt()
        if inputs.grammar is None or prompt is None:
            return source
        assert self._guides is not None, "the builder holds no answer that cannot end"
        guide = self._guides.open(inputs.grammar, inputs.grammar_after, is_json=inputs.is_json)
        return StaticEmbeddings(replace(prompt, guide=guide))

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, 1] -> [N, D]."""
        embedded: torch.Tensor = self.network.embed_input_ids(frames[:, 0])
        return embedded

    def _check_width(self, checkpoint: Path) -> None:
        embedded = self.embed_frames(torch.zeros(1, 1, dtype=torch.int64, device=self._device))
        width, hidden = embedded.shape[-1], self._model_config.get_hidden_size()
        if width != hidden:
            raise ConfigError(
                f"{checkpoint}: embeddings of {width} numbers for layers of {hidden}; not served"
            )

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R] tokens -> [R, 1], with one token for every end."""
        if len(self.other_ends) and self.end_code is not None:
            code0 = code0.masked_fill(torch.isin(code0, self.other_ends), self.end_code)
        return code0[:, None]


def _find_window(model_config: Any) -> int | None:
    """Return how many tokens each layer looks back, if that is the same for all; None: as each
    layer says itself, or all tokens."""
    layers = getattr(model_config.hf_text_config, "layer_types", None) or ()
    if any(kind != "sliding_attention" for kind in layers):
        return None
    window: int | None = model_config.get_sliding_window()
    return window
