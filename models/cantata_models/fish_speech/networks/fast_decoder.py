"""The fast stack: from a position's hidden state and code 0 to the other codes of its frame.

Position 0 takes the hidden state, position 1 code 0, position i + 1 code i; position i's scores
are code i's. All codebooks share one table and one head. The stack is Qwen3's, in most
checkpoints without norms of queries and keys.

Letters: R requests, D the slow stack's width, H the fast one's, V codes, Q codebooks.
"""

from __future__ import annotations

import torch
from torch import nn

from cantata.contract.model.row_products import RowLinear
from cantata_layers.code_predictor import ChooseCode, PredictorLayer, RmsNorm
from cantata_layers.qwen3_config import Qwen3Stack
from cantata_models.fish_speech.networks.rotary import tables


class FastDecoder(nn.Module):
    """Completes frames.

    Args:
        config: of the stack; `vocab_size` is V.
        slow_size: D; where it is not H, a projection precedes the stack.
        num_codebooks: Q.
        max_codes: of the codes after code 0, only the first so many can be chosen.
    """

    def __init__(
        self, config: Qwen3Stack, slow_size: int, num_codebooks: int, max_codes: int
    ) -> None:
        super().__init__()
        self._config = config
        self._num_codebooks, self._max_codes = num_codebooks, max_codes
        size = config.hidden_size
        self.project_in = RowLinear(slow_size, size) if slow_size != size else nn.Identity()
        self.embeddings = nn.Embedding(config.vocab_size, size)
        self.layers = nn.ModuleList(PredictorLayer(config) for _ in range(config.layers))
        self.norm = RmsNorm(size, config.rms_norm_eps)
        self.output = RowLinear(size, config.vocab_size, bias=False)
        for name, table in zip(
            ("cos", "sin"), tables(num_codebooks, config.head_dim, config.rope_theta), strict=True
        ):
            self.register_buffer(name, torch.cat((table, table), dim=-1), persistent=False)

    def forward(
        self, hidden: torch.Tensor, code0: torch.Tensor, choose: ChooseCode
    ) -> torch.Tensor:
        """Complete frames.

        Args:
            hidden: [R, D].
            code0: [R] int64, below V.
            choose: draws the codes of one codebook.

        Returns:
            [R, Q] int64.
        """
        config, requests = self._config, len(hidden)
        shape = (config.layers, 2, requests, config.kv_heads, self._num_codebooks, config.head_dim)
        cache = hidden.new_empty(shape)
        codes = [code0]
        x = torch.stack((self.project_in(hidden), self.embeddings(code0)), dim=1)
        start = 0
        for book in range(1, self._num_codebooks):
            last = self._run(x, start, cache)
            codes.append(choose(self.output(last)[:, : self._max_codes], book))
            start += x.shape[1]
            x = self.embeddings(codes[-1])[:, None]
        return torch.stack(codes, dim=1)

    def _run(self, x: torch.Tensor, start: int, cache: torch.Tensor) -> torch.Tensor:
        """[R, T, H] at positions start.. -> [R, H], the hidden state of the last position."""
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            x = layer(x, start, (self.cos, self.sin), keys, values)
        return torch.as_tensor(self.norm(x[:, -1]))
