"""What `cantata serve` and `cantata replica` serve, and which of it loads later."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.api.server.server_config import EndpointOptions, ServerOptions
from cantata.config.plugins import (
    list_embedded_models,
    list_embedded_recognizers,
    load_plugins,
    locate,
)
from cantata.contract.data.errors import ConfigError
from cantata.distributed.key import KEY_VARIABLE
from cantata.distributed.replica.host import ReplicaHost
from cantata.pipeline import plan
from cantata.serving.replica import ReplicaOptions, run_replica
from cantata.serving.server import ModelsHere, add_model_aliases
from cantata.utils.logs import LogFormat

SPEAKS = locate(None).plugin.name


def prepare(
    monkeypatch: pytest.MonkeyPatch, *models: str, options: ServerOptions | None = None
) -> tuple[list[str], list[str]]:
    """Names of the models that are waited for, and of those that load later."""
    preloaded: list[str] = []

    def preload(plans: list[plan.ServicePlan]) -> None:
        preloaded.extend(one.located.plugin.name for one in plans)

    monkeypatch.setattr(plan, "preload_stages", preload)
    here = ModelsHere(models, (), None)
    here.prepare(options or ServerOptions())
    first, later = (
        [one.located.plugin.name for one in plans] for plans in (here._first, here._later)
    )
    assert preloaded == first, "nothing is imported for what loads later"
    return first, later


def test_what_ships_with_weights_is_served_and_the_default_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, later = prepare(monkeypatch)
    assert (first, [*first, *later]) == ([SPEAKS], list_embedded_models())


def test_a_model_is_known_by_what_it_was_given_as() -> None:
    """A hub's id and a folder, whole and by the last part. Other names stay what they are."""
    options = ServerOptions(aliases=("small=painter",))
    models = ["duo", "org/Duo-1B", "/models/reader/", "painter=/models/x=y/small"]
    named = add_model_aliases(options, models, ["duo", "duo", "reader", "painter"])
    assert named.aliases == (
        "small=painter",
        "org/Duo-1B=duo",
        "Duo-1B=duo",
        "/models/reader/=reader",
    )
    assert add_model_aliases(options, [], []) == options


def test_of_two_models_given_by_one_name_the_first_has_it() -> None:
    named = add_model_aliases(ServerOptions(), ["/a/tiny", "/b/tiny"], ["duo", "reader"])
    assert named.aliases == ("/a/tiny=duo", "tiny=duo", "/b/tiny=reader")


def test_a_deployment_of_another_model_is_refused_with_the_model_that_it_was_for(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("stages: {painter: {}}\n")
    here = ModelsHere([SPEAKS], [other], None)
    with pytest.raises(
        ConfigError, match=rf"\['painter'\]; valid: .* \(for the model '{SPEAKS}'\)"
    ):
        here.prepare(ServerOptions())


def test_a_recognizer_comes_later_beside_a_named_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    [recognizer] = list_embedded_recognizers()
    assert prepare(monkeypatch, SPEAKS) == ([SPEAKS], [recognizer])
    # Not beside one that was named,
    assert prepare(monkeypatch, SPEAKS, recognizer) == ([SPEAKS, recognizer], [])
    # nor where an endpoint transcribes,
    endpoint = ServerOptions(transcription=EndpointOptions("http://there/v1", "a-model"))
    assert prepare(monkeypatch, SPEAKS, options=endpoint) == ([SPEAKS], [])
    # nor beside what only draws,
    plugins = load_plugins()
    draws = next(name for name in list_embedded_models() if plugins[name].load_image_builder)
    assert prepare(monkeypatch, draws) == ([draws], [])
    # nor without the package that runs it.
    monkeypatch.setattr(plan, "list_embedded_recognizers", list)
    assert prepare(monkeypatch, SPEAKS) == ([SPEAKS], [])


@pytest.mark.parametrize(
    ("with_recognizer", "later"), [(True, list_embedded_recognizers()), (False, [])]
)
async def test_a_replica_serves_the_same(
    monkeypatch: pytest.MonkeyPatch, with_recognizer: bool, later: list[str]
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a key of thirty-two bytes, about")
    monkeypatch.setattr(plan, "preload_stages", lambda plans: None)
    met: list[ReplicaHost] = []

    class Met(Exception):
        pass

    def meet(host: ReplicaHost) -> None:
        met.append(host)
        raise Met

    options = ReplicaOptions(
        "127.0.0.1:0", [SPEAKS], [], None, None, 1.0, LogFormat.TEXT, with_recognizer
    )
    with pytest.raises(Met):
        await run_replica(options, lambda told: None, meet)
    [host] = met
    assert list(host._service.models) == [SPEAKS]
    assert list(host._service.transcription_models) == later
    assert set(host._spare) == set(later)


def test_an_option_unloads_models_whose_deployments_do_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plan, "preload_stages", lambda plans: None)
    own = tmp_path / "own.yaml"
    shipped = locate(None).plugin.deployment.read_text()
    own.write_text(f"idle_unload_s: 5\n{shipped}")
    [recognizer] = list_embedded_recognizers()
    here = ModelsHere([SPEAKS, recognizer], [own], None, idle_unload_s=60)
    here.prepare(ServerOptions())
    assert [one.deployment.idle_unload_s for one in here._first] == [5, 60]
    elsewhere = own.read_text().replace("device: cpu", "device: cpu\n    host: 10.0.0.1:8200")
    assert elsewhere != own.read_text()
    own.write_text(elsewhere)
    with pytest.raises(ConfigError, match=r"idle_unload_s: stages .* run on other machines"):
        ModelsHere([SPEAKS], [own], None).prepare(ServerOptions())
