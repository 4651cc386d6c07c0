"""C2PA manifests: signed here, read back, and damaged in every way."""

from __future__ import annotations

import io
import json
import random
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from typer.testing import CliRunner

from cantata.api.server.server_config import ServerOptions, build_settings
from cantata.audio.encoding import open_encoder
from cantata.audio.formats import FORMATS, output_format
from cantata.cli.app import app
from cantata.contract.data.errors import ConfigError, RequestFailed
from cantata.media import certificates
from cantata.media.certificates import write_trial_certificate
from cantata.media.images import PictureFormat, PictureOutput, write_picture
from cantata.media.provenance import SOURCE_TYPES, find_provenance
from cantata.media.signing import FileSigner, SigningFiles

pytest.importorskip("c2pa")

RATE = 24_000


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> SigningFiles:
    return SigningFiles(*write_trial_certificate(tmp_path_factory.mktemp("trial")))


@pytest.fixture(scope="module")
def signer(trial: SigningFiles) -> FileSigner:
    return FileSigner(trial)


def speech(form: str) -> bytes:
    encoder = open_encoder(output_format(form, RATE, 1, None))
    sound = np.sin(np.arange(RATE // 2) / 9).astype(np.float32).reshape(-1, 1)
    file = bytearray(encoder.feed(sound) + encoder.finish())
    head = encoder.encode_head(len(file))
    file[: len(head)] = head
    return bytes(file)


@pytest.mark.parametrize("form", ["wav", "mp3", "flac"])
def test_signed_sound_is_the_same_sound(form: str, signer: FileSigner) -> None:
    plain = speech(form)
    signed = signer.sign(plain, FORMATS[form].media_type)
    found = find_provenance(signed)
    assert found.manifest is not None
    assert (found.manifest.state, found.manifest.self_signed) == ("valid", True)
    assert found.manifest.problems == ()
    assert (found.synthetic, found.digital_source_type) == (True, "trainedAlgorithmicMedia")
    before, after = (soundfile.read(io.BytesIO(file))[0] for file in (plain, signed))
    assert np.array_equal(before, after)


@pytest.mark.parametrize("form", ["opus", "aac", "pcm"])
def test_formats_without_a_place_for_a_manifest(form: str, signer: FileSigner) -> None:
    assert not signer.takes(FORMATS[form].media_type)


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
def test_a_signed_picture_fits_until_it_is_changed(
    form: PictureFormat, signer: FileSigner, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    signed = signer.sign(write_picture(pixels, PictureOutput(form)), f"image/{form}")
    path = tmp_path / "a"
    path.write_bytes(signed)
    told = CliRunner().invoke(app, ["verify", str(path)]).output
    assert "self-signed, for a trial, and fits the file" in told
    at = len(signed) // 8 if form == "webp" else len(signed) - 100  # in the pixels
    path.write_bytes(signed[:at] + bytes([signed[at] ^ 1]) + signed[at + 1 :])
    assert "does not fit the file: " in CliRunner().invoke(app, ["verify", str(path)]).output


def test_damage_is_told_and_never_crashes(signer: FileSigner) -> None:
    signed, rng = signer.sign(speech("wav"), "audio/wav"), random.Random(1)
    for _ in range(100):
        broken = bytearray(signed)
        for _ in range(rng.choice((1, 30))):
            broken[rng.randrange(48, len(broken))] ^= 1 + rng.randrange(255)
        found = find_provenance(bytes(broken[: rng.randrange(100, len(broken))])).manifest
        assert found is None or found.state != "valid"


def test_a_file_on_the_disk_is_signed_in_its_place(signer: FileSigner, tmp_path: Path) -> None:
    path = tmp_path / "speech.flac"
    path.write_bytes(speech("flac"))
    signer.sign_file(path, "audio/flac")
    found = find_provenance(path.read_bytes()).manifest
    assert found is not None
    assert found.state == "valid"
    path.write_bytes(b"no flac")
    with pytest.raises(RequestFailed, match="cannot be signed"):
        signer.sign_file(path, "audio/flac")
    assert [one.name for one in tmp_path.iterdir()] == ["speech.flac"]


def test_a_manifest_elsewhere_is_not_fetched(trial: SigningFiles) -> None:
    """Whoever made a file would learn from it that somebody looks."""
    c2pa = pytest.importorskip("c2pa")
    info = c2pa.C2paSignerInfo(
        c2pa.C2paSigningAlg.ES256, trial.certificate.read_bytes(), trial.key.read_bytes(), None
    )
    actions = [{"action": "c2pa.created", "digitalSourceType": f"{SOURCE_TYPES}digitalArt"}]
    assertion = {"label": "c2pa.actions.v2", "data": {"actions": actions}}
    other = [{"name": "other", "version": "1"}]
    manifest = {"claim_generator_info": other, "assertions": [assertion]}
    signed = io.BytesIO()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/a.c2pa"
        with c2pa.Signer.from_info(info) as signer, c2pa.Builder(json.dumps(manifest)) as builder:
            builder.set_no_embed()
            builder.set_remote_url(address)
            builder.sign(signer, "image/png", io.BytesIO(draw_picture()), signed)
        assert address.encode() in signed.getvalue()
        found = find_provenance(signed.getvalue())
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert found.manifest is None or found.manifest.state != "valid"


def draw_picture() -> bytes:
    return write_picture(np.zeros((8, 8, 3), np.uint8), PictureOutput("png", tagged=False))


def certify(
    folder: Path, begins: float = -2, days: float = 9, *, web: bool = False
) -> SigningFiles:
    """A certificate that begins in so many days, of a named issuer, for e-mail or for the web."""
    key, root = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name, issuer = (
        x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, one)])
        for one in ("Example Ltd", "Example CA")
    )
    start, extended = datetime.now(UTC) + timedelta(days=begins), ExtendedKeyUsageOID
    usage = extended.SERVER_AUTH if web else extended.EMAIL_PROTECTION
    nothing_else = [False] * 8
    certificate = (
        x509.CertificateBuilder(issuer, name, key.public_key(), 7)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(True, *nothing_else), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), critical=False
        )
        .sign(root, hashes.SHA256())
    )
    files, pem = SigningFiles(folder / "c.pem", folder / "k.pem"), serialization.Encoding.PEM
    files.certificate.write_bytes(certificate.public_bytes(pem))
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files.key.write_bytes(key.private_bytes(pem, form, secret))
    return files


def test_an_operators_own_certificate(tmp_path: Path) -> None:
    signer = FileSigner(certify(tmp_path))
    assert not signer.is_self_signed
    found = find_provenance(signer.sign(speech("wav"), "audio/wav")).manifest
    assert found is not None
    assert (found.state, found.signer, found.self_signed) == ("valid", "Example Ltd", False)


def test_a_certificate_that_cannot_sign_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expired on"):
        FileSigner(certify(tmp_path, begins=-9, days=3))
    with pytest.raises(ConfigError, match="is not valid before"):
        FileSigner(certify(tmp_path, begins=2))
    with pytest.raises(ConfigError, match="cannot sign files"):
        FileSigner(certify(tmp_path, web=True))


def test_a_certificate_that_expires_meanwhile_signs_no_more(tmp_path: Path) -> None:
    day_s, left_s = 86_400, 6
    signer = FileSigner(certify(tmp_path, begins=-1, days=1 + left_s / day_s))

    def sign_until_refused() -> None:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            signer.sign(speech("wav"), "audio/wav")
            time.sleep(0.2)

    with pytest.raises(RequestFailed, match="not valid at time of signing"):
        sign_until_refused()


def test_another_key_and_what_is_no_certificate(trial: SigningFiles, tmp_path: Path) -> None:
    _, other = write_trial_certificate(tmp_path)
    with pytest.raises(ConfigError, match="is not the key of"):
        FileSigner(replace(trial, key=other))
    with pytest.raises(ConfigError, match="is not a certificate in PEM"):
        FileSigner(replace(trial, certificate=trial.key))
    with pytest.raises(ConfigError, match="No such file"):
        FileSigner(replace(trial, key=tmp_path / "none"))


def test_the_trial_certificate_is_written_once_and_its_key_is_private(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["certificate", str(tmp_path / "new")])
    assert made.exit_code == 0
    assert "--provenance signed" in made.output
    assert (tmp_path / "new" / certificates.KEY_NAME).stat().st_mode & 0o077 == 0
    again = CliRunner().invoke(app, ["certificate", str(tmp_path / "new")])
    assert again.exit_code == 1
    assert "File exists" in again.output


def test_options_that_do_not_fit_are_refused() -> None:
    own = ServerOptions(provenance="signed", signing_certificate=Path("c"), signing_key=Path("k"))
    for options, said in (
        (replace(own, signing_key=None), "needs --signing-certificate and --signing-key"),
        (replace(own, provenance="tags"), "need --provenance signed"),
        (replace(own, timestamp_url="tsa.example"), "write http"),
    ):
        with pytest.raises(ConfigError, match=said):
            build_settings(options, "127.0.0.1")
