"""Deployment files: how many slots, which device and machine each stage gets."""

from cantata.config.deployment import (
    KINDS,
    ArDeployment,
    CodecDeployment,
    ConversationDeployment,
    DecodeWindow,
    Deployment,
    DiffusionDeployment,
    Dtype,
    FeedForwardDeployment,
    KindSupport,
    PlacedStage,
    SamplingDefaults,
    StageDeployment,
    TilingDeployment,
    load_deployment,
    parse_deployment,
)

__all__ = [
    "KINDS",
    "ArDeployment",
    "CodecDeployment",
    "ConversationDeployment",
    "DecodeWindow",
    "Deployment",
    "DiffusionDeployment",
    "Dtype",
    "FeedForwardDeployment",
    "KindSupport",
    "PlacedStage",
    "SamplingDefaults",
    "StageDeployment",
    "TilingDeployment",
    "load_deployment",
    "parse_deployment",
]
