"""The models of a cluster, as the source of a server (`cantata.serving.server.Source`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.distributed.address import ReplicaDirectory
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.key import LinkKey
from cantata.distributed.link.tls import read_tls
from cantata.distributed.ray.authentication import derive_link_secret
from cantata.utils.logs import LogFormat

if TYPE_CHECKING:
    from cantata.api.server.server_config import ServerOptions
    from cantata.contract.transcription_service import TranscriptionService


class ModelsOnCluster:
    """Models of the replicas of a Ray cluster. `directory`: tells which replicas there are."""

    def __init__(self, directory: ReplicaDirectory) -> None:
        self._directory = directory
        self._service: RemoteService | None = None

    @property
    def queued(self) -> Mapping[str, int]:
        """Requests that wait at this edge, by model."""
        return {} if self._service is None else self._service.waiting

    def prepare(self, options: ServerOptions) -> ServerOptions:
        """Nothing to find here."""
        return options

    def service(self, log_format: LogFormat) -> TranscriptionService:
        """Over links, with the secret that follows from Ray's token."""
        # As text, since that is what the environment of a replica carries.
        secret = derive_link_secret(os.environ, Path.home()).hex().encode()
        key = LinkKey(secret, read_tls())
        self._service = RemoteService(self._directory, key)
        return self._service

    @property
    def status(self) -> str:
        """What happens until then."""
        return "waiting for the cluster's replicas ..."
