"""C2PA manifests in files that are made here, signed with the operator's certificate, offline.

A manifest is bound to the file's bytes by their hash, so only a file that is whole can be signed.
https://spec.c2pa.org/specifications/specifications/2.2/specs/C2PA_Specification.html
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from cantata.contract.data.errors import ConfigError, NotInstalled, RequestFailed
from cantata.media.certificates import Credentials, read_credentials
from cantata.media.manifests import SETTINGS
from cantata.media.provenance import MADE_BY_A_MODEL, SOURCE_TYPES

_MEDIA_TYPES = frozenset(
    ("audio/flac", "audio/mp4", "audio/mpeg", "audio/wav", "image/jpeg", "image/png", "image/webp")
)
"""Of the files that are made here; Ogg, ADTS and bare samples have no place for a manifest."""
_MIN_WAV = (
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\0"
)


@dataclass(frozen=True, slots=True)
class SigningFiles:
    """Who signs."""

    certificate: Path
    """PEM: the signer's certificate, then those that lead to its root."""
    key: Path
    """PEM, without a password."""
    timestamp_url: str | None = None
    """An RFC 3161 authority that is asked for the time of each signature; None: none is."""


class FileSigner:
    """Signs files. Its methods block; threads may share it.

    Raises:
        NotInstalled: c2pa-python is not there.
        ConfigError: the certificate cannot sign: damaged, expired, of another key, or not for this.
    """

    def __init__(self, files: SigningFiles) -> None:
        try:
            import c2pa
        except ImportError as error:
            raise NotInstalled(
                "signed files need c2pa-python: pip install 'cantata[provenance]'"
            ) from error
        self._c2pa = c2pa
        self._credentials: Credentials = read_credentials(files.certificate, files.key)
        self._timestamp_url = files.timestamp_url
        self._context = c2pa.Context.from_dict(SETTINGS)
        try:
            # An authority is not asked for this: it may be away while the server starts.
            self._sign(_MIN_WAV, "audio/wav", None)
        except c2pa.C2paError as error:
            raise ConfigError(f"{files.certificate} cannot sign files: {error}") from error

    @property
    def is_self_signed(self) -> bool:
        """Whether nobody but the operator vouches for the certificate."""
        return self._credentials.is_self_signed

    def takes(self, media_type: str) -> bool:
        return media_type in _MEDIA_TYPES

    def sign(self, file: bytes, media_type: str) -> bytes:
        """The file with a manifest in it: about 3 kB more, in 2 ms; its sound or pixels stay.

        Raises:
            RequestFailed: the certificate has expired meanwhile, or the time authority is away.
        """
        try:
            return self._sign(file, media_type, self._timestamp_url)
        except self._c2pa.C2paError as error:
            raise RequestFailed(f"the file cannot be signed: {error}") from error

    def sign_file(self, path: Path, media_type: str) -> None:
        """As `sign`, of a file of any size on the disk.

        Raises:
            RequestFailed: as `sign`.
            OSError: the disk does not take it.
        """
        signed = path.with_name(f".{path.name}")
        try:
            with path.open("rb") as source, signed.open("w+b") as target:
                self._sign_stream(source, target, media_type, self._timestamp_url)
            signed.replace(path)
        except self._c2pa.C2paError as error:
            raise RequestFailed(f"the file cannot be signed: {error}") from error
        finally:
            signed.unlink(missing_ok=True)

    def _sign(self, file: bytes, media_type: str, timestamp_url: str | None) -> bytes:
        signed = io.BytesIO()
        self._sign_stream(io.BytesIO(file), signed, media_type, timestamp_url)
        return signed.getvalue()

    def _sign_stream(
        self, source: BinaryIO, target: BinaryIO, media_type: str, timestamp_url: str | None
    ) -> None:
        c2pa, credentials = self._c2pa, self._credentials
        info = c2pa.C2paSignerInfo(
            credentials.algorithm, credentials.chain, credentials.key, timestamp_url
        )
        with (
            c2pa.Signer.from_info(info) as signer,
            c2pa.Builder(json.dumps(_build_manifest()), context=self._context) as builder,
        ):
            builder.sign(signer, media_type, source, target)


def _build_manifest() -> dict[str, Any]:
    software = {"name": "Cantata", "version": version("cantata")}
    made = {
        "action": "c2pa.created",
        "digitalSourceType": SOURCE_TYPES + MADE_BY_A_MODEL,
        "softwareAgent": software,
    }
    return {
        "claim_generator_info": [software],
        "assertions": [{"label": "c2pa.actions.v2", "data": {"actions": [made]}}],
    }
