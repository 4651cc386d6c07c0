"""vLLM's thinker accepts the fields of media as what they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers.models.qwen2_vl import image_processing_pil_qwen2_vl

from cantata_models.qwen3_omni.features import (
    Grid,
    MediaFeatures,
    Modality,
    SoundFeatures,
    VisionFeatures,
)
from cantata_models.qwen3_omni.thinker_media import identity_of, modality_of, thinker_fields

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

WITH_TORCHVISION = "transformers.models.qwen2_vl.image_processing_qwen2_vl"
ONE_ROW = ("input_audio_features", "pixel_values", "pixel_values_videos", "use_audio_in_video")
"""Fields without a dimension for the media of a request."""
PATCHES = np.arange(2 * 4 * 4 * 6, dtype=np.float32).reshape(32, 6)
SOUND = SoundFeatures(np.arange(128 * 9, dtype=np.float32).reshape(128, 9))
MEDIA: dict[str, MediaFeatures] = {
    "audio": SOUND,
    "image": VisionFeatures(Modality.IMAGE, PATCHES[:16], Grid(1, 4, 4), 2),
    "video": VisionFeatures(Modality.VIDEO, PATCHES, Grid(2, 4, 4), 2, seconds_per_step=1.0),
}


def vllm_items(fields: Mapping[str, NDArray[Any]], modality: str) -> Any:
    """What vLLM makes of a request with this medium alone."""
    from vllm.model_executor.models.qwen2_5_omni_thinker import (
        create_qwen2_5_omni_thinker_field_factory,
    )
    from vllm.multimodal.inputs import MultiModalKwargsItems

    tensors = {
        name: torch.from_numpy(values if name in ONE_ROW else values[None])
        for name, values in fields.items()
    }
    configs = create_qwen2_5_omni_thinker_field_factory(2)(tensors)
    return MultiModalKwargsItems.from_hf_inputs(tensors, configs)[modality]


@pytest.mark.parametrize("modality", MEDIA)
def test_vllm_sees_one_medium_of_its_kind(modality: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # WHY: vLLM takes one function from a module that needs torchvision; this one has it too.
    monkeypatch.setitem(sys.modules, WITH_TORCHVISION, image_processing_pil_qwen2_vl)
    media = MEDIA[modality]
    fields = thinker_fields(media)
    assert modality_of(media) == modality
    (item,) = vllm_items(fields, modality)
    data = item.get_data()
    assert data.keys() == fields.keys()
    for name, values in fields.items():
        assert torch.equal(torch.as_tensor(data[name]), torch.from_numpy(values)), name


def test_only_equal_media_are_the_same() -> None:
    again = SoundFeatures(SOUND.mels.copy())
    assert identity_of(again) == identity_of(SOUND)
    again.mels[3, 4] += 1e-3
    slower = VisionFeatures(Modality.VIDEO, PATCHES, Grid(2, 4, 4), 2, seconds_per_step=2.0)
    other = VisionFeatures(Modality.VIDEO, PATCHES, Grid(2, 2, 8), 2, seconds_per_step=1.0)
    everything = [*MEDIA.values(), again, slower, other]
    assert len({identity_of(media) for media in everything}) == len(everything)
