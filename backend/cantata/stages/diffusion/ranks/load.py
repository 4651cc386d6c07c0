"""Loads one denoiser in several processes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from setproctitle import getproctitle

from cantata.contract.model.denoiser import Denoiser, DenoiserOptions
from cantata.contract.model.factory import resolve
from cantata.stages.common.ranks import RankGroup, RankPeer, join, listening
from cantata.stages.diffusion.ranks.denoiser import RankedDenoiser
from cantata.stages.diffusion.ranks.group import MODULE, LoadModel


def load_ranked(factory: str, checkpoint: Path, options: DenoiserOptions) -> RankedDenoiser:
    """Load a model here and in the processes of the other ranks, all at the same time.

    From then on this process ends if one of the others does, and they end with this one.

    Args:
        factory: `package.module:function`.
        options: of rank 0.

    Raises:
        CantataError: the model cannot be loaded; nothing is left of the others.
    """
    own = options.ranks
    assert own is not None
    with ExitStack() as undo:
        listener = undo.enter_context(listening())
        port = listener.getsockname()[1]
        peers = []
        for rank in range(1, own.size):
            title = f"{getproctitle()}:rank-{rank}"
            load = LoadModel(title, factory, checkpoint, _choose_rank_options(options, rank), port)
            peer = RankPeer(MODULE, load)
            undo.callback(peer.end)
            peers.append(peer)
        first = _choose_rank_options(options, own.rank)
        join(own.rank, own.size, first.device, port, listener)
        model: Denoiser = resolve(factory)(checkpoint, first)
        for peer in peers:
            peer.wait_until_loaded()
        undo.pop_all()
    group = RankGroup(peers)
    group.watch()
    return RankedDenoiser(model, group)


def _choose_rank_options(options: DenoiserOptions, rank: int) -> DenoiserOptions:
    """Each rank has a GPU of its own."""
    assert options.ranks is not None
    device = f"{options.device}:{rank}" if options.device == "cuda" else options.device
    return replace(options, device=device, ranks=replace(options.ranks, rank=rank))
