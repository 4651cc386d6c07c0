"""Requests for pictures to stage inputs, in the api's process.

Letters: H height, W width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.picture import PlannedImage
from cantata.contract.model.pipeline import PROGRESS
from cantata_layers.qwen_image.config.pipeline import Family, load_config
from cantata_layers.qwen_image.lora.fusing import LoraFile
from cantata_layers.qwen_image.lora.lightning import drawing_defaults
from cantata_layers.qwen_image.sampling.schedule import noise_shares
from cantata_layers.qwen_image.stages.inputs import (
    DecodeInput,
    DenoiseInput,
    EncodeInput,
    ReferenceInput,
)
from cantata_layers.qwen_image.stages.ports import (
    DECODE,
    DENOISE,
    ENCODE,
    IMAGE,
    REFERENCES_STAGE,
)
from cantata_layers.qwen_image.stages.sizes import forward_size
from cantata_layers.qwen_image.text.pictures import (
    EDIT_AREAS,
    EditAreas,
    Size,
    near_area,
    resized,
    size_of,
)
from cantata_layers.qwen_image.text.prompts import Prompts

NOTHING = " "
"""The negative prompt unless a request has one, as the publisher recommends."""
NO_GUIDANCE = 1.0
