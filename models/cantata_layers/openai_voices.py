"""OpenAI's voice names, as aliases for clients that accept no others."""

OPENAI_VOICES = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)


def list_aliases(index: int, voices: int) -> tuple[str, ...]:
    """Those of one of a model's voices: each name goes to one of them.

    Args:
        index: of the voice.
        voices: that the model has.
    """
    return OPENAI_VOICES[index::voices]
