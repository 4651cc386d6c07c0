"""Reads C2PA manifests of any file: whose they are, and whether the file is still as signed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Literal

from cantata.media.certificates import SELF_SIGNED

SETTINGS = {
    "verify": {"remote_manifest_fetch": False, "ocsp_fetch": False},
    "builder": {"thumbnail": {"enabled": False}},
}
"""Of c2pa-rs: nothing is fetched, whatever a file says."""
_UNTRUSTED = "signingCredential.untrusted"
_MAX_PROBLEMS = 8
_STATES: dict[str, Literal["valid", "invalid"]] = {"Valid": "valid", "Trusted": "valid"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A C2PA manifest that a file has."""

    state: Literal["valid", "invalid", "unreadable"]
    """valid: signed by the certificate's key, and the file is as it was then."""
    signer: str | None
    """Organization and name in its certificate, which anybody may have chosen: no list of trusted
    signers is known here."""
    self_signed: bool
    """It was made with `cantata certificate`, for a trial."""
    problems: tuple[str, ...]
    """C2PA's codes of what is wrong, or why it cannot be read."""


def read_manifest(data: bytes) -> Manifest | None:
    """The active manifest of a file. Nothing is fetched. Blocks.

    Returns:
        None: it has none, its format has no place for one, or c2pa-python is not installed.
    """
    try:
        import c2pa
    except ImportError:
        return None
    try:
        context = c2pa.Context.from_dict(SETTINGS)
        with c2pa.Reader(None, io.BytesIO(data), context=context) as reader:
            active = reader.get_active_manifest() or {}
            results = reader.get_validation_results() or {}
            return _describe(active, str(reader.get_validation_state()), results)
    except (c2pa.C2paError.ManifestNotFound, c2pa.C2paError.NotSupported):
        return None
    except (c2pa.C2paError, ValueError) as error:
        return Manifest("unreadable", None, False, (str(error)[:200],))


def _describe(active: dict[str, Any], state: str, results: dict[str, Any]) -> Manifest:
    signature = active.get("signature_info") or {}
    names = [signature.get(name) for name in ("issuer", "common_name")]
    failures = (results.get("activeManifest") or {}).get("failure") or []
    codes = dict.fromkeys(str(one.get("code")) for one in failures)
    codes.pop(_UNTRUSTED, None)  # no list of trusted signers is known, so that is always said
    return Manifest(
        state=_STATES.get(state, "invalid"),
        signer=", ".join(str(name) for name in names if name) or None,
        self_signed=signature.get("issuer") == SELF_SIGNED,
        problems=tuple(codes)[:_MAX_PROBLEMS],
    )
