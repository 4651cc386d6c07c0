"""Values of published files as structs: names, limits, defaults, and errors that give the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, Size, read_json


class Stack(msgspec.Struct, frozen=True):
    """Sizes, under names of their own."""

    width: Size = msgspec.field(name="hidden_size")
    rates: tuple[int, ...] = (2, 3)
    epsilon: float = 1e-6
    speakers: dict[str, int] = {}

    def __post_init__(self) -> None:
        if self.width % 2:
            raise ValueError(f"hidden_size {self.width} is odd")


class Whole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of parts."""

    stack: Stack
    parts: tuple[Stack, ...] = ()


def test_fields_have_the_names_of_the_file_and_defaults_for_null(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 4, "epsilon": 1, "rates": None, "more": [1]}))
    stack = read_json(path).read(Stack)
    assert stack == Stack(width=4, epsilon=1.0)
    assert type(stack.epsilon) is float


def test_what_is_not_there_may_be_another_struct_s() -> None:
    usual = Stack(width=8, rates=(5,), epsilon=0.5)
    found = JsonFields({"rates": [1, 2], "epsilon": None}, "config.json").read(Stack, usual)
    assert found == Stack(width=8, rates=(1, 2), epsilon=0.5)


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ({}, "config.json: stack: hidden_size is missing"),
        ({"hidden_size": None}, "config.json: stack: hidden_size is missing"),
        ({"hidden_size": 0}, "config.json: stack: hidden_size must be at least 1, not 0"),
        ({"hidden_size": "4"}, "config.json: stack: hidden_size must be int, not '4'"),
        ({"hidden_size": True}, "config.json: stack: hidden_size must be int, not True"),
        ({"hidden_size": 4.0}, "config.json: stack: hidden_size must be int, not 4.0"),
        ({"hidden_size": 3}, "config.json: stack: hidden_size 3 is odd"),
        ({"hidden_size": 4, "rates": 5}, "config.json: stack: rates must be a list, not 5"),
        (
            {"hidden_size": 4, "rates": [1, ""]},
            "config.json: stack: rates[1] must be int, not ''",
        ),
        ([], "config.json: stack must be an object, not []"),
    ],
)
def test_what_is_wrong_is_named(stack: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JsonFields({"stack": stack}, "config.json").read(Whole)
    assert caught.value.message == message


def test_a_value_of_a_table_is_named_by_its_table() -> None:
    values = {"hidden_size": 4, "speakers": {"ann.b": "x"}}
    with pytest.raises(ConfigError, match=r"speakers.* must be int"):
        JsonFields(values, "config.json").read(Stack)


def test_unknown_keys_are_refused_where_the_struct_says_so() -> None:
    values = {"stack": {"hidden_size": 2}, "stacks": 1}
    with pytest.raises(ConfigError, match="unknown stacks; valid keys: stack, parts"):
        JsonFields(values, "config.json").read(Whole)


def test_only_what_is_served_is_expected() -> None:
    fields = JsonFields({"act": "gelu", "bias": True, "size": 3}, "config.json")
    assert fields.expect("act", "silu", "gelu") == "gelu"
    assert fields.expect("norm", "rms", default="rms") == "rms"
    for key, valid, message in (
        ("act", ("silu", "relu"), "act 'gelu' is not served; valid: 'silu', 'relu'"),
        ("bias", (False,), "bias true is not served; valid: false"),
        ("size", (1, 2), "size 3 is not served; valid: 1, 2"),
        ("norm", ("rms",), "norm is missing"),
        ("size", ("rms",), "size must be str, not 3"),
    ):
        with pytest.raises(ConfigError) as caught:
            fields.expect(key, *valid)
        assert caught.value.message == f"config.json: {message}"
