"""Certificates that sign files: the operator's, and one made here for a trial.

C2PA asks for a certificate with the key usage "digital signature", an extended usage such as
e-mail protection, and an issuer other than itself (section 14.5.1 of its specification).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cantata.contract.data.errors import ConfigError, NotInstalled

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

SELF_SIGNED = "Self-signed for a trial"
"""Organization in certificates that are made here: what others see of who vouches for it."""
CERTIFICATE_NAME, KEY_NAME = "certificate.pem", "key.pem"
_TRIAL = timedelta(days=365)
_CLOCKS = timedelta(minutes=5)
"""How late other clocks may be."""
_MIN_RSA_BITS = 2048
_CURVES = {"secp256r1": "es256", "secp384r1": "es384", "secp521r1": "es512"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What signs, as c2pa takes it."""

    algorithm: bytes
    chain: bytes
    key: bytes
    is_self_signed: bool


def read_credentials(certificate: Path, key: Path) -> Credentials:
    """A certificate that is valid now, and its key.

    Raises:
        ConfigError: the files cannot be read, do not belong together, or are not valid today.
        NotInstalled: cryptography is not there.
    """
    _check_installed()
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    chain, secret = _read(certificate), _read(key)
    try:
        certificates = x509.load_pem_x509_certificates(chain)
    except ValueError as error:
        raise ConfigError(f"{certificate} is not a certificate in PEM: {error}") from error
    try:
        private = serialization.load_pem_private_key(secret, None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{key} is not a key in PEM without a password: {error}") from error
    first = certificates[0]
    _check_validity(first, certificate)
    if first.public_key() != private.public_key():
        raise ConfigError(f"{key} is not the key of {certificate}")
    organizations = first.issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    own = any(one.value == SELF_SIGNED for one in organizations) or first.issuer == first.subject
    return Credentials(_name_algorithm(private, key).encode(), chain, secret, own)


def write_trial_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate that nobody vouches for, valid for a year, and its key.

    Returns:
        Both files; the key can be read by its owner alone.

    Raises:
        ConfigError: one of them is there already, or the folder cannot be written.
        NotInstalled: cryptography is not there.
    """
    _check_installed()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    paths = folder / CERTIFICATE_NAME, folder / KEY_NAME
    root, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    chain = (_certify(root, root, is_root=True), _certify(key, root, is_root=False))
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    written = b"".join(one.public_bytes(pem) for one in reversed(chain)), secret
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in zip(paths, written, strict=True):
            with os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(data)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}") from error
    return paths


def _certify(
    key: EllipticCurvePrivateKey, root: EllipticCurvePrivateKey, *, is_root: bool
) -> x509.Certificate:
    """A certificate of `key`, signed by the root."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    def name(common: str) -> x509.Name:
        named = (x509.NameOID.ORGANIZATION_NAME, SELF_SIGNED), (x509.NameOID.COMMON_NAME, common)
        return x509.Name([x509.NameAttribute(*one) for one in named])

    now, issuer = datetime.now(UTC), root.public_key()
    usage = x509.KeyUsage(
        digital_signature=not is_root,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_root,
        crl_sign=is_root,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name("Cantata, root" if is_root else "Cantata"))
        .issuer_name(name("Cantata, root"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS)
        .not_valid_after(now + _TRIAL)
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=0 if is_root else None), True)
        .add_extension(usage, True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), False)
    )
    if not is_root:
        mail = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
        builder = builder.add_extension(mail, False)
    return builder.sign(root, hashes.SHA256())


def _check_installed() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise NotInstalled(
            "certificates need cryptography: pip install 'cantata[provenance]'"
        ) from error


def _check_validity(certificate: x509.Certificate, path: Path) -> None:
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise ConfigError(f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    if now < certificate.not_valid_before_utc:
        raise ConfigError(f"{path} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}")


def _name_algorithm(key: PrivateKeyTypes, path: Path) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return _CURVES[key.curve.name]
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return "ed25519"
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _MIN_RSA_BITS:
        return "ps256"
    raise ConfigError(f"{path}: valid keys: P-256, P-384, P-521, Ed25519, RSA of 2048 bits or more")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
