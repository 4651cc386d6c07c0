"""What the text encoder reads around a prompt, word for word as the model was trained.

Source: `prompt_template_encode` of the three pipelines in diffusers.
"""

from __future__ import annotations

from dataclasses import dataclass

from cantata_layers.qwen_image.config.pipeline import Family

PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
TURN = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}"
ANSWER = "<|im_end|>\n<|im_start|>assistant\n"
DESCRIBE = (
    "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial "
    "relationships of the objects and background:"
)
CHANGE = (
    "Describe the key features of the input image (color, shape, size, texture, objects, "
    "background), then explain how the user's text instruction should alter or modify the image. "
    "Generate a new image that meets the user's requirements while maintaining consistency with "
    "the original input where appropriate."
)
MAX_PROMPT_TOKENS = 1024
"""Of text to picture, with the header of the answer; the rest is cut."""
MAX_EMBEDDINGS = 512
"""Of text to picture, unless a request asks for up to `MAX_PROMPT_TOKENS`."""


@dataclass(frozen=True, slots=True)
class Template:
    """Of a family."""

    system: str
    dropped: int
    """Tokens in front of what the user says; the denoiser does not see them."""
    cuts: bool
    """Whether long prompts are cut; otherwise all of them counts."""
    picture: str
    """In front of the prompt for each picture, with its number from 1."""

    @property
    def head(self) -> str:
        """In front of the user's text."""
        return TURN.format(system=self.system, user="")

    def pictures(self, count: int) -> str:
        """Places of the pictures, between head and prompt."""
        return "".join(self.picture.format(number) for number in range(1, count + 1))


TEMPLATES = {
    Family.IMAGE: Template(DESCRIBE, dropped=34, cuts=True, picture=""),
    Family.EDIT: Template(CHANGE, dropped=64, cuts=False, picture=PICTURE),
    Family.EDIT_PLUS: Template(CHANGE, dropped=64, cuts=False, picture="Picture {}: " + PICTURE),
}
