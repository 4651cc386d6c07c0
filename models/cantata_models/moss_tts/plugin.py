"""The plug-ins of both models for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.moss_tts.config import local, nano
from cantata_models.moss_tts.pipeline import LOCAL_PIPELINE, NANO_PIPELINE

LOCAL = ModelPlugin(
    name="moss-tts-local",
    model_types=(local.MODEL_TYPE,),
    pipeline=LOCAL_PIPELINE,
    deployment=Path(__file__).with_name("deploy_local.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_local_builder"),
    check_numerics=Factory("cantata_models.moss_tts.numerics:check_local"),
    write_random_checkpoint=Factory(
        "cantata_models.moss_tts.random_checkpoint.write:write_tiny_local"
    ),
)
NANO = ModelPlugin(
    name="moss-tts-nano",
    model_types=(nano.MODEL_TYPE,),
    pipeline=NANO_PIPELINE,
    deployment=Path(__file__).with_name("deploy_nano.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_nano_builder"),
    check_numerics=Factory("cantata_models.moss_tts.numerics:check_nano"),
    write_random_checkpoint=Factory(
        "cantata_models.moss_tts.random_checkpoint.write:write_tiny_nano"
    ),
)
