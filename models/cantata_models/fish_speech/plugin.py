"""The plug-ins of both layouts for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.fish_speech.config import Layout
from cantata_models.fish_speech.pipeline import S1_PIPELINE, S2_PIPELINE

S2 = ModelPlugin(
    name="fish-speech-s2",
    model_types=(Layout.S2,),
    pipeline=S2_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s2.yaml"),
    load_builder=Factory("cantata_models.fish_speech.s2_request_builder:load_s2_builder"),
    check_numerics=Factory("cantata_models.fish_speech.numerics:check_numerics"),
    write_random_checkpoint=Factory(
        "cantata_models.fish_speech.random_checkpoint.write:write_tiny_s2"
    ),
)
S1 = ModelPlugin(
    name="openaudio-s1",
    model_types=(Layout.S1,),
    pipeline=S1_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s1.yaml"),
    load_builder=Factory("cantata_models.fish_speech.request_builder:load_s1_builder"),
    check_numerics=Factory("cantata_models.fish_speech.numerics:check_numerics"),
    write_random_checkpoint=Factory(
        "cantata_models.fish_speech.random_checkpoint.write:write_tiny_s1"
    ),
)
