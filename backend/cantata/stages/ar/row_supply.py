"""Conditioning rows that are made while their request speaks.

A long text's rows may take as long as several steps: made all at once, they would delay the
request's own first packet and every other stream's frames.
"""

from __future__ import annotations

import torch

from cantata.contract.data.errors import CantataError
from cantata.contract.model.embedding_source import EmbeddingSource
from cantata.stages.ar.request_state import RequestStates
from cantata.stages.common.plugin_call import guard_plugin_call

SOON = 4
"""With fewer rows ahead than this, a request's next block may be made."""


class RowSupply:
    """Extends requests' rows before each step, one block at a time if that is soon enough.

    Args:
        states: hold the requests.
    """

    def __init__(self, states: RequestStates) -> None:
        self._states = states
        self._sources: dict[str, EmbeddingSource] = {}

    def add(self, request_id: str, source: EmbeddingSource) -> None:
        """Makes the rows of a request behind those that it has; its source is not open."""
        self._sources[request_id] = source

    def forget(self, request_id: str) -> None:
        """The request has ended; unknown ids are fine."""
        self._sources.pop(request_id, None)

    @torch.inference_mode()
    def top_up(self) -> list[tuple[str, CantataError]]:
        """Make the rows that the steps after the next one need; if none does, one block for the
        request that will need one first.

        Returns:
            The requests whose rows could not be made, and why.
        """
        failures: list[tuple[str, CantataError]] = []
        by_need = sorted(self._sources, key=self._count_rows_ahead)
        for place, request_id in enumerate(by_need):
            if self._count_rows_ahead(request_id) > (0 if place else SOON):
                break
            try:
                with guard_plugin_call("rows could not be made"):
                    self._extend(request_id)
            except CantataError as error:
                failures.append((request_id, error))
        return failures

    def _count_rows_ahead(self, request_id: str) -> int:
        """Rows after the one that the request's next position takes."""
        states = self._states
        slot = states.get_slot(request_id)
        position = states.prompt_len[slot] - 1 + states.num_frames[slot]
        return int(states.last_row[slot] - position)

    def _extend(self, request_id: str) -> None:
        block = self._sources[request_id].more()
        if block is None:
            self.forget(request_id)
        else:
            self._states.extend(request_id, block)
