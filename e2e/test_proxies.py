"""nginx and Caddy in front of the server, with the files of docs/howto/proxies.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme
from websockets.sync.client import connect

from cantata_bench.server import end, free_port
from documented import HOWTOS, fill_in, read_block

from .conftest import GIVEN_URL, ROOT
from .server import READY_DEADLINE_S, Server, wait_until

pytestmark = pytest.mark.e2e

DOCUMENT = HOWTOS / "proxies.md"
PACKAGES = ROOT / ".cache" / "proxies"
CHAPTER = "He walked along the river and looked at the boats, and nobody saw him there. " * 60
BEGINNING, REST = "The gate is open, and the road is long. ", "We shall walk until the evening."
FOREIGN = {"x-forwarded-for": "203.0.113.9"}
UPLOAD_BYTES = 5 << 20


@dataclass(frozen=True)
class Proxy:
    """One that runs."""

    url: str
    trust: ssl.SSLContext

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.trust, timeout=60)


def find_program(name: str) -> str:
    found = shutil.which(name, path=f"{PACKAGES}/usr/sbin:{PACKAGES}/usr/bin")
    if found is None:
        pytest.skip(f"{name} is not here: scripts/proxy-packages.sh {PACKAGES.relative_to(ROOT)}")
    return found


@contextmanager
def nginx(server: str, folder: Path) -> Iterator[Proxy]:
    program = find_program("nginx")
    port, authority = free_port(), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = folder / "fullchain.pem", folder / "privkey.pem"
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    values = {
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "server_name speech.example.com": "server_name 127.0.0.1",
        "/etc/ssl/speech.example.com/fullchain.pem": str(chain),
        "/etc/ssl/speech.example.com/privkey.pem": str(key),
        "http://127.0.0.1:8000": server,
    }
    (folder / "cantata.conf").write_text(fill_in(read_block(DOCUMENT, "cantata.conf"), values))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    # In one process, which needs no other user.
    main = [f"pid {folder}/pid;", "daemon off;", "master_process off;", "events {}", "http {"]
    main += ["access_log off;", *(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)]
    main += [f"include {folder}/cantata.conf;", "}"]
    (folder / "nginx.conf").write_text("\n".join(main))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with running([program, "-c", f"{folder}/nginx.conf", "-e", "stderr"], folder):
        yield answering(f"https://127.0.0.1:{port}", lambda: trust)


@contextmanager
def caddy(server: str, folder: Path) -> Iterator[Proxy]:
    program = find_program("caddy")
    url = f"https://127.0.0.1:{free_port()}"
    values = {"speech.example.com": url, "127.0.0.1:8000": server.removeprefix("http://")}
    # A certificate of its own authority: no other gives one to an address.
    here = ["admin off", "auto_https disable_redirects", "local_certs", "skip_install_trust"]
    here += ["default_bind 127.0.0.1", f"storage file_system {folder}/storage"]
    page = fill_in(read_block(DOCUMENT, "Caddyfile"), values)
    (folder / "Caddyfile").write_text("\n".join(["{", *here, "}", page]))
    authority = folder / "storage" / "pki" / "authorities" / "local" / "root.crt"
    with running([program, "run", "--config", f"{folder}/Caddyfile"], folder):
        yield answering(url, lambda: ssl.create_default_context(cafile=authority))


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    environment = {**os.environ, "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        yield
        assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
    finally:
        end(process)


def answering(url: str, make_trust: Callable[[], ssl.SSLContext]) -> Proxy:
    """The proxy, once it answers."""

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/health", verify=make_trust()).is_success
        except (httpx.TransportError, FileNotFoundError):
            return False

    wait_until(answers, READY_DEADLINE_S, f"{url} answers")
    return Proxy(url, make_trust())


@pytest.fixture(scope="module", params=[nginx, caddy])
def proxy(
    request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    with request.param(server.url, tmp_path_factory.mktemp("proxy")) as running:
        yield running


def count_aborted(server: Server) -> float:
    metrics = server.get("/metrics").text
    found = re.findall(r"^cantata_speech_stream_aborted_total\{.*\} (\S+)", metrics, re.MULTILINE)
    return sum(map(float, found))


@pytest.mark.parametrize("sent_as", [{"stream_format": "sse"}, {"response_format": "pcm"}])
def test_sound_arrives_while_it_is_made_and_a_client_that_leaves_ends_it(
    proxy: Proxy, server: Server, sent_as: dict[str, str]
) -> None:
    server.speech(input="Yes.")  # the server has figures from its first request on
    wait_until(server.is_idle, READY_DEADLINE_S, "the server is idle")
    aborted = count_aborted(server)
    body = {"input": CHAPTER, **sent_as}
    with proxy.client() as http, http.stream("POST", "/v1/audio/speech", json=body) as answer:
        assert answer.is_success
        pieces = answer.iter_bytes()
        assert next(pieces)
        assert server.gauge("cantata_requests_running") == 1, "all was made before any came"
    wait_until(server.is_idle, READY_DEADLINE_S, "the server makes no more")
    assert count_aborted(server) == aborted + 1


def test_a_socket_of_its_own_page_speaks_before_the_text_is_complete(proxy: Proxy) -> None:
    url = proxy.url.replace("https", "wss", 1) + "/v1/audio/speech/stream"
    with connect(url, ssl=proxy.trust, additional_headers={"origin": proxy.url}) as socket:
        socket.send(json.dumps({"type": "session.config", "split_granularity": "sentence"}))
        socket.send(json.dumps({"type": "input.text", "text": BEGINNING}))
        while not isinstance(socket.recv(READY_DEADLINE_S), bytes):
            pass
        for message in ({"type": "input.text", "text": REST}, {"type": "input.done"}):
            socket.send(json.dumps(message))
        kind = ""
        while kind != "input.spoken":
            heard = socket.recv(READY_DEADLINE_S)
            kind = "" if isinstance(heard, bytes) else json.loads(heard)["type"]
            assert kind != "error", heard


def test_a_page_of_another_site_is_refused_as_without_a_proxy(proxy: Proxy) -> None:
    with proxy.client() as http:
        own = http.post("/v1/audio/voices/consents", headers={"origin": proxy.url})
        foreign = http.post("/v1/audio/voices/consents", headers={"origin": "https://a.example"})
    assert (own.status_code, foreign.status_code) == (200, 403)


def test_a_large_upload_reaches_the_server(proxy: Proxy) -> None:
    files = {"audio_sample": bytes(UPLOAD_BYTES)}
    with proxy.client() as http:
        answer = http.post("/v1/audio/voices", data={"name": "A", "consent": "true"}, files=files)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "audio_sample")


def test_the_server_learns_the_clients_address_from_the_proxy_alone(
    proxy: Proxy, server: Server
) -> None:
    """A program on this machine needs no token, whatever address it claims."""
    if GIVEN_URL:
        pytest.skip("the server that is given may see this machine at another address")
    recording = server.speech(input=CHAPTER[:200], response_format="wav").content
    voice = {"data": {"name": "Passing", "consent": "true"}, "files": {"audio_sample": recording}}
    url = f"{server.url}/v1/audio/voices"
    httpx.post(url, **voice, timeout=60).raise_for_status()  # type: ignore[arg-type]
    assert httpx.delete(f"{url}/Passing", headers=FOREIGN).status_code == 403
    with closing(proxy.client()) as http:
        assert http.delete("/v1/audio/voices/Passing", headers=FOREIGN).status_code == 200
