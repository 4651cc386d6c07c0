"""Whether a session can begin, and with which model."""

from __future__ import annotations

from cantata.api.context import ApiContext
from cantata.api.realtime.choice import ModelChoice, choose, choose_listener
from cantata.contract.data.errors import InvalidRequest

_INTENTS = (None, "", "conversation", "transcription")


async def open_session(context: ApiContext, name: str | None, intent: str | None) -> ModelChoice:
    """The model of a session, which can begin now.

    Args:
        context: the app's parts.
        name: of the model, as the client wrote it.
        intent: `transcription` for a session that only transcribes.

    Raises:
        InvalidRequest: there is no such intent.
        CantataError: as of `choose` and `choose_listener`, or nothing can begin.
    """
    if intent not in _INTENTS:
        raise InvalidRequest(f"intent {intent!r}: valid: transcription, conversation", "intent")
    listens = intent == "transcription"
    choice = choose_listener(context, name) if listens else choose(context, name)
    await context.cascade.prepare()
    choice.check_room()
    return choice
