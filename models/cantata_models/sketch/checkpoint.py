"""Where the shipped checkpoint lies: the published layout of Qwen-Image, a folder for each part."""

from __future__ import annotations

from pathlib import Path

WEIGHTS_FOLDER = Path(__file__).with_name("weights")
"""The weights shipped with the package, float16."""
SIDE = 128
"""Side in pixels of the only size of picture that the model was trained for."""
STEPS = 20
"""Denoising steps that suffice."""
GUIDANCE = 3.0
"""Scale of classifier-free guidance, against the prompt `NEGATIVE`."""
NEGATIVE = " "
"""Stands for no caption at all, as in the published pipeline."""
