"""The operator's options, and the defaults without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.api.access.api_keys import ApiKeys, read_keys
from cantata.api.server.server_config import EndpointOptions, ServerOptions, build_settings
from cantata.contract.data.errors import ConfigError
from cantata.speech_input.settings import CallSettings, Endpoint

KEY, OTHER = "first-key-0123456789", "second-key-9876543210"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "10.0.0.1", "8.8.8.8"])
def test_beyond_this_machine_a_key_is_needed(address: str) -> None:
    with pytest.raises(ConfigError, match=r"CANTATA_API_KEYS.*--api-key-file.*--no-auth"):
        build_settings(ServerOptions(), address)
    assert len(build_settings(ServerOptions(api_keys=KEY), address).security.api_keys) == 1
    assert not build_settings(ServerOptions(no_auth=True), address).security.api_keys


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.5", "::1"])
def test_on_this_machine_none_is(address: str) -> None:
    settings = build_settings(ServerOptions(), address)
    assert not settings.security.api_keys
    assert settings.security.public_lists
    assert settings.security.allowed_origins == ()
    assert settings.fetch is None
    assert settings.references.voices_dir is not None
    assert settings.references.voices_dir.parts[-2:] == ("cantata", "voices")


def test_options_become_settings(tmp_path: Path) -> None:
    options = ServerOptions(
        private_lists=True,
        allow_origins=("https://a.example", "http://localhost:7860"),
        max_concurrent_per_key=3,
        voices_dir=tmp_path,
        allow_ref_urls=True,
        ref_url_ports=(8080,),
    )
    settings = build_settings(options, "127.0.0.1")
    assert settings.fetch is not None
    assert settings.fetch.ports == {80, 443, 8080}
    assert settings.fetch.allowed_networks == ()
    assert settings.references.voices_dir == tmp_path
    assert settings.security.max_concurrent_per_key == 3
    assert not settings.security.public_lists


def test_aliases_become_settings() -> None:
    written = ("kokoro=hibari", " gpt-4o = qwen3-omni", "kokoro=hibari")
    settings = build_settings(ServerOptions(aliases=written), "127.0.0.1")
    assert settings.model_aliases == {"kokoro": "hibari", "gpt-4o": "qwen3-omni"}


@pytest.mark.parametrize("written", [("kokoro",), ("=solo",), ("kokoro=",), ("a=b", "a=c")])
def test_wrong_aliases_are_named(written: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="--alias"):
        build_settings(ServerOptions(aliases=written), "127.0.0.1")


@pytest.mark.parametrize(
    "options",
    [
        ServerOptions(api_keys=KEY, no_auth=True),
        ServerOptions(api_keys="short"),
        ServerOptions(api_keys="with spaces in it here"),
        ServerOptions(api_keys="k\u00e9y-that-is-long-enough"),
        ServerOptions(allow_origins=("example.org",)),
        ServerOptions(allow_origins=("https://a.example/",)),
        ServerOptions(allow_origins=("https://",)),
        ServerOptions(allow_origins=("null",)),
    ],
)
def test_invalid_options_are_rejected(options: ServerOptions) -> None:
    with pytest.raises(ConfigError) as refusal:
        build_settings(options, "127.0.0.1")
    for key in filter(None, options.api_keys.split(",")):
        assert key not in str(refusal.value)


def test_keys_from_both_places(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the kitchen\n{OTHER}\n\n")
    keys = read_keys(f" {KEY} ,,", file)
    assert len(keys) == 2
    labels = {keys.match(KEY), keys.match(OTHER)}
    assert None not in labels
    assert len(labels) == 2
    assert keys.match(KEY + OTHER) is None
    file.write_text("# none\n")
    with pytest.raises(ConfigError, match="contains no API key"):
        read_keys("", file)
    with pytest.raises(ConfigError, match="cannot read API keys"):
        read_keys("", tmp_path / "nothing")


def test_keys_do_not_show_themselves() -> None:
    keys = ApiKeys([KEY])
    assert KEY not in repr(keys) + str(vars(keys))
    assert KEY not in str(keys.match(KEY))


def test_endpoints_of_conversations_are_named_in_full() -> None:
    chat = EndpointOptions("http://localhost:11434/v1/", "a-model", "a-key")
    realtime = build_settings(ServerOptions(chat=chat), "127.0.0.1").realtime
    assert realtime.chat == Endpoint("http://localhost:11434/v1", "a-model", "a-key")
    assert "a-key" not in repr(realtime)
    assert realtime.transcription is None
    for wrong in (EndpointOptions("http://a/v1"), EndpointOptions(model="m")):
        with pytest.raises(ConfigError, match="--transcription-url and --transcription-model"):
            build_settings(ServerOptions(transcription=wrong), "127.0.0.1")
    with pytest.raises(ConfigError, match=r"--chat-url.*http://localhost"):
        build_settings(ServerOptions(chat=EndpointOptions("localhost:1", "m")), "127.0.0.1")


def test_a_deployments_endpoints_are_used_where_no_option_names_one() -> None:
    assert EndpointOptions(key="k").with_defaults("u", "m") == EndpointOptions("u", "m", "k")
    assert EndpointOptions("a", "b").with_defaults("u", "m") == EndpointOptions("a", "b")


def test_where_media_of_calls_arrive() -> None:
    options = ServerOptions(webrtc_ports="50000-50199", webrtc_address="192.0.2.7")
    calls = build_settings(options, "127.0.0.1").realtime.calls
    assert calls == CallSettings((50_000, 50_199), "192.0.2.7")
    assert build_settings(ServerOptions(), "127.0.0.1").realtime.calls == CallSettings()


@pytest.mark.parametrize("ports", ["", "5", "50000", "60000-50000", "80-90", "50000-70000", "a-b"])
def test_ports_of_calls_are_a_range(ports: str) -> None:
    with pytest.raises(ConfigError, match="FIRST-LAST"):
        build_settings(ServerOptions(webrtc_ports=ports), "127.0.0.1")


@pytest.mark.parametrize("address", ["example.org", "::1", ""])
def test_the_address_of_calls_is_one(address: str) -> None:
    with pytest.raises(ConfigError, match="IPv4"):
        build_settings(ServerOptions(webrtc_address=address), "127.0.0.1")
