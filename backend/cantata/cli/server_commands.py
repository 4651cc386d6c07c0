"""The commands that run servers: one, a replica, a host of stages, a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cantata.cli.runner import fail, run, set_up_logging
from cantata.serving.options import (
    AllowedHosts,
    AllowedOrigins,
    AllowRefUrls,
    ApiKeyFile,
    ChatModelName,
    ChatUrl,
    ClusterKeyFile,
    Deployments,
    DrainTimeout,
    DtypeOption,
    Form,
    IdleUnload,
    JobsExpire,
    JobsFolder,
    JobsPerKey,
    Lexicons,
    LogFormats,
    LogLevel,
    LogLevels,
    ModelAliases,
    Models,
    MostPerKey,
    NoAuth,
    PrivateLists,
    ProvenanceMode,
    RayCluster,
    RefUrlPorts,
    ReplicaAddresses,
    RequestLogFile,
    SharePort,
    SigningCertificate,
    SigningKey,
    TimestampUrl,
    TracesEndpoint,
    TranscriptionModelName,
    TranscriptionUrl,
    VoiceConsent,
    VoicesFolder,
    VoicesUrl,
    Watermark,
    WatermarkKey,
    WebRtcAddress,
    WebRtcPorts,
    WyomingPort,
)
from cantata.utils.logs import LogFormat

if TYPE_CHECKING:
    from cantata.config import Dtype as NumberFormat
    from cantata.serving.options import Dtype
    from cantata.serving.server import Source


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    model: Models = None,
    dtype: DtypeOption = None,
    deploy: Deployments = None,
    idle_unload: IdleUnload = None,
    wyoming_port: WyomingPort = None,
    api_key_file: ApiKeyFile = None,
    no_auth: NoAuth = False,
    private_lists: PrivateLists = False,
    allow_origin: AllowedOrigins = None,
    allow_host: AllowedHosts = None,
    alias: ModelAliases = None,
    max_concurrent_per_key: MostPerKey = None,
    voices_dir: VoicesFolder = None,
    voices_url: VoicesUrl = None,
    lexicon: Lexicons = None,
    jobs_dir: JobsFolder = None,
    jobs_per_key: JobsPerKey = 100,
    jobs_expire: JobsExpire = 7.0,
    allow_ref_urls: AllowRefUrls = False,
    ref_url_port: RefUrlPorts = None,
    chat_url: ChatUrl = None,
    chat_model: ChatModelName = None,
    transcription_url: TranscriptionUrl = None,
    transcription_model: TranscriptionModelName = None,
    webrtc_ports: WebRtcPorts = None,
    webrtc_address: WebRtcAddress = None,
    replica: ReplicaAddresses = None,
    cluster: RayCluster = None,
    cluster_key_file: ClusterKeyFile = None,
    voice_consent: VoiceConsent = "none",
    provenance: ProvenanceMode = "tags",
    signing_certificate: SigningCertificate = None,
    signing_key: SigningKey = None,
    timestamp_url: TimestampUrl = None,
    watermark: Watermark = False,
    watermark_key: WatermarkKey = None,
    request_log: RequestLogFile = None,
    otlp_traces_endpoint: TracesEndpoint = None,
    share_port: SharePort = False,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Serve models over HTTP and WebSocket until interrupted."""
    if not replica:
        from cantata.ipc import fork_server

        fork_server.begin()  # it imports torch while this process finds out what is to be served
    from rich.console import Console

    set_up_logging(log_level, log_format)
    from cantata.api.server import server_config
    from cantata.serving import server

    options = server_config.ServerOptions(
        api_keys=os.environ.get(server_config.KEYS_VARIABLE, ""),
        api_key_file=api_key_file,
        no_auth=no_auth,
        private_lists=private_lists,
        allow_origins=tuple(allow_origin or ()),
        allow_hosts=tuple(allow_host or ()),
        aliases=tuple(alias or ()),
        max_concurrent_per_key=max_concurrent_per_key,
        voices_dir=voices_dir,
        voices_url=voices_url,
        consent=voice_consent,
        provenance=provenance,
        signing_certificate=signing_certificate,
        signing_key=signing_key,
        timestamp_url=timestamp_url,
        watermark=watermark,
        watermark_key=watermark_key,
        request_log=request_log,
        otlp_traces_endpoint=otlp_traces_endpoint,
        lexicons=tuple(lexicon or ()),
        jobs_dir=jobs_dir,
        jobs_per_key=jobs_per_key,
        jobs_expire_days=jobs_expire,
        allow_ref_urls=allow_ref_urls,
        ref_url_ports=tuple(ref_url_port or ()),
        drain_timeout_s=drain_timeout,
        chat=server_config.read_chat_endpoint(chat_url, chat_model),
        transcription=server_config.read_stt_endpoint(transcription_url, transcription_model),
        webrtc_ports=webrtc_ports,
        webrtc_address=webrtc_address,
    )
    listening = server.ListenOptions(host, port, wyoming_port, shared=share_port)
    if replica and (model or deploy or dtype or cluster or idle_unload):
        fail("--replica excludes --model, --deploy, --dtype, --idle-unload, --cluster", code=2)
    source: Source
    if replica:
        source = server.ModelsOnReplicas(replica, cluster_key_file)
    else:
        source = _choose_source(
            model or [], deploy or [], dtype, idle_unload, cluster, cluster_key_file
        )
    run(server.serve(listening, source, options, log_format, Console()))


def _choose_source(
    models: list[str],
    deployments: list[Path],
    dtype: Dtype | None,
    idle_unload_s: float | None,
    cluster: str | None,
    key_file: Path | None,
) -> Source:
    """Models whose pipelines this process runs: their stages are here, or on a Ray cluster."""
    from cantata.serving import server

    number_format: NumberFormat | None = dtype.value if dtype else None
    if cluster is None:
        return server.ModelsHere(models, deployments, number_format, key_file, idle_unload_s)
    if idle_unload_s is not None:
        fail("--cluster excludes --idle-unload: the models run on other machines", code=2)
    from cantata.deploy.ray_discovery import ModelsOnRay

    return ModelsOnRay(cluster, models, deployments, number_format)


def replica(
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address for edges to reach; port 0: a free one."),
    ] = "127.0.0.1:8100",
    model: Models = None,
    dtype: DtypeOption = None,
    deploy: Deployments = None,
    idle_unload: IdleUnload = None,
    cluster_key_file: ClusterKeyFile = None,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Run models for servers on other machines, which connect with `cantata serve --replica`."""
    set_up_logging(log_level, log_format)
    from cantata.serving.replica import ReplicaOptions, run_replica

    number_format: NumberFormat | None = dtype.value if dtype else None
    options = ReplicaOptions(
        listen,
        tuple(model or ()),
        tuple(deploy or ()),
        number_format,
        cluster_key_file,
        drain_timeout,
        log_format,
        with_recognizer=True,
        idle_unload_s=idle_unload,
    )
    run(run_replica(options, print))


def stage_host(
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address for servers to reach; port 0: a free one."),
    ] = "127.0.0.1:8200",
    cluster_key_file: ClusterKeyFile = None,
    drain_timeout: DrainTimeout = 60.0,
    log_level: LogLevels = LogLevel.INFO,
    log_format: LogFormats = LogFormat.TEXT,
) -> None:
    """Run stages for servers and replicas on other machines whose deployments name this host."""
    set_up_logging(log_level, log_format)
    from cantata.serving.stage_host import StageHostOptions, run_stage_host

    options = StageHostOptions(listen, cluster_key_file, drain_timeout, log_format)
    run(run_stage_host(options, print))


def deploy(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Deployment files with a `cluster` section, in the order of --model.",
        ),
    ] = None,
    model: Models = None,
    dtype: DtypeOption = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Serve without API keys.")] = False,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            help="File on the edges' machines with one API key per line; or set CANTATA_API_KEYS "
            "there."
        ),
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--print", help="Print what would be submitted, and stop.")
    ] = None,
    image: Annotated[
        str, typer.Option(help="Container image with Ray, for --print kubernetes.")
    ] = "cantata:cpu",
) -> None:
    """Run models and edges on a Ray cluster, or upgrade those that run there."""
    set_up_logging()
    from cantata.deploy import serve_config

    number_format: NumberFormat | None = dtype.value if dtype else None
    options = serve_config.DeployOptions(
        tuple(files or ()), tuple(model or ()), number_format, no_auth, api_key_file
    )
    run(serve_config.run(options, form, image, print))
