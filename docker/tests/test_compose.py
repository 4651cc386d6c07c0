"""That the compose files, Prometheus and Grafana agree with each other and with the images."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.main import get_group

from cantata.cli.app import app
from dockerfiles import last, steps

DOCKER = Path(__file__).parents[1]


def read(path: str) -> Any:
    """A YAML file of docker/."""
    return yaml.safe_load((DOCKER / path).read_text())


COMPOSE = read("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def mounts(service: str) -> dict[str, str]:
    """What a service sees: its path there to the source, a path here or a volume's name."""
    return {
        target: source
        for source, target, *_ in (mount.split(":") for mount in SERVICES[service]["volumes"])
    }


def provisioned(folder: str) -> Any:
    """The one file of a kind that Grafana reads when it starts."""
    (file,) = (DOCKER / "grafana/provisioning" / folder).glob("*.yaml")
    return yaml.safe_load(file.read_text())


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_open_to_this_machine_alone(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service]["ports"])


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_mounted_exists(service: str) -> None:
    for source in mounts(service).values():
        if source.startswith("."):
            assert (DOCKER / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("service", SERVICES)
def test_containers_have_no_privileges(service: str) -> None:
    assert SERVICES[service]["cap_drop"] == ["ALL"]
    assert SERVICES[service]["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in SERVICES[service]


@pytest.mark.parametrize("service", ["prometheus", "grafana"])
def test_images_of_others_are_pinned(service: str) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", SERVICES[service]["image"])


@pytest.mark.parametrize("file", ["compose.yaml", "compose.cuda.yaml"])
def test_the_server_runs_with_a_key_and_options_that_it_knows(file: str) -> None:
    server = read(file)["services"]["server"]
    known = {option for param in get_group(app).commands["serve"].params for option in param.opts}
    options = dict(word.split("=") for word in server["command"][2:])
    assert options.keys() <= known
    assert options["--api-key-file"] == "/run/secrets/api-key"
    for option in ("--voices-dir", "--jobs-dir"):
        assert options[option].startswith(tuple(mounts("server")))
    assert (DOCKER / Path(server["build"]["dockerfile"]).name).exists()


@pytest.mark.parametrize("file", ["compose.yaml", "compose.cuda.yaml"])
def test_the_server_is_started_as_its_image_starts_it(file: str) -> None:
    server = read(file)["services"]["server"]
    image = list(steps(DOCKER / Path(server["build"]["dockerfile"]).name))
    words = [part for word in server["command"] for part in word.split("=", 1)]
    assert words == [*json.loads(last(image, "CMD")), "--api-key-file", "/run/secrets/api-key"]


def test_prometheus_reads_the_server_with_its_key() -> None:
    (scrape,) = read("prometheus.yaml")["scrape_configs"]
    (target,) = scrape["static_configs"][0]["targets"]
    service, _, port = target.partition(":")
    assert SERVICES[service]["ports"][0].endswith(f":{port}")
    assert scrape["authorization"]["credentials_file"] == "/run/secrets/api-key"
    assert SERVICES["prometheus"]["secrets"] == SERVICES[service]["secrets"] == ["api-key"]
    (config,) = (word for word in SERVICES["prometheus"]["command"] if "--config.file" in word)
    assert config.partition("=")[2] in mounts("prometheus")


def test_grafana_reads_prometheus() -> None:
    (source,) = provisioned("datasources")["datasources"]
    url = urlsplit(source["url"])
    assert url.hostname is not None
    assert SERVICES[url.hostname]["ports"][0].endswith(f":{url.port}")


def test_grafana_shows_dashboards_that_ask_the_provisioned_source() -> None:
    (source,) = provisioned("datasources")["datasources"]
    (provider,) = provisioned("dashboards")["providers"]
    folder = DOCKER / mounts("grafana")[provider["options"]["path"]]
    environment = SERVICES["grafana"]["environment"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.parent == Path(provider["options"]["path"])
    dashboard = json.loads((folder / home.name).read_text())
    for panel in dashboard["panels"]:
        if "datasource" in panel:
            uid = panel["datasource"]["uid"]
            assert uid == source["uid"] or uid.startswith("$"), panel["title"]


def test_grafana_accepts_no_default_password() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_files_are_readable_by_the_users_of_the_containers() -> None:
    for path in [DOCKER / "prometheus.yaml", *(DOCKER / "grafana").rglob("*")]:
        assert os.stat(path).st_mode & 0o004, path
