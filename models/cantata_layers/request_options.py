"""A request's model-specific fields: validated, described for clients, and those that several
models have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from cantata.contract.data.capabilities import OptionSchemas
from cantata.contract.data.errors import InvalidRequest

CLONE, CONTINUATION = "voice_clone", "continuation"
TopK = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""0 means all."""
Options = TypeVar("Options", bound=BaseModel)


def parse_fields(values: Mapping[str, Any], kind: type[Options]) -> Options:
    """Return the fields as a model's own options. Raises InvalidRequest: names the first wrong
    field and what it may be."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = str(problem["loc"][0])
        shown = repr(problem["input"])[:80]
        raise InvalidRequest(f"{field}: {problem['msg']}, not {shown}", field) from None


@cache
def field_schemas(kind: type[BaseModel]) -> OptionSchemas:
    """The JSON Schema of each field, whole in itself.

    `null` is left out: in a request it means the same as no field. So are names of Pydantic's own
    making.
    """
    whole = kind.model_json_schema()
    shared = whole.get("$defs", {})
    return {name: _simplify_schema(schema, shared) for name, schema in whole["properties"].items()}


def _simplify_schema(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [one for one in schema.get("anyOf", [{}]) if one.get("type") != "null"]
    own = {key: value for key, value in schema.items() if key != "anyOf"}
    found = {**kinds[0], **own} if len(kinds) == 1 else {**own, "anyOf": kinds}
    reference = found.pop("$ref", None)
    if reference is not None:
        found = {**shared[reference.rsplit("/", 1)[1]], **found}
    found.pop("title", None)
    if "description" in found:
        found["description"] = " ".join(found["description"].split())
    if found.get("default", ...) is None:
        del found["default"]
    return found


def recording_mode(asked: str | None, *, recording: bool, transcript: bool) -> str | None:
    """Return what a request's recording is for, in the published programs' words.

    Args:
        asked: the request's `mode`; None: a recording with a transcript is continued, any other
            imitated.
        transcript: whether the recording's words are known.

    Returns:
        "voice_clone" or what else was asked for, and None without a recording.

    Raises:
        InvalidRequest: the mode needs a recording or a transcript.
    """
    if not recording:
        if asked is not None:
            raise InvalidRequest(
                f"mode {asked!r} needs ref_audio, a recording of the speaker, or the name of an "
                "uploaded voice",
                "ref_audio",
            )
        return None
    mode = asked or (CONTINUATION if transcript else CLONE)
    if mode != CLONE and not transcript:
        raise InvalidRequest(
            "ref_text is missing, the transcript of the recording to continue; or set mode to "
            f"{CLONE!r}",
            "ref_text",
        )
    return mode
