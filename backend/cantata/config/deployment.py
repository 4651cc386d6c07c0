"""Deployments: strict YAML in, frozen models out. Read once, passed down.

A plug-in ships one `deploy.yaml` that users copy and edit. Its stages are those of the plug-in's
pipeline; each stage's keys depend on the stage's kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from cantata.config.cluster import ClusterOptions, StageHostAddress
from cantata.config.diffusion import HookedStage, ParallelStage, StepCache
from cantata.config.strict_model import StrictModel, explain, list_keys
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import PipelineSpec, StageKind

Dtype = Literal["float32", "bfloat16", "float16"]


M = TypeVar("M", bound=StrictModel)


class SamplingDefaults(StrictModel):
    """A request's defaults."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_k: Annotated[int, Field(ge=0)] = 0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] = 1.0


def _check_device(device: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", device):
        raise ValueError("valid: 'cpu', 'cuda', or 'cuda:1' for the second GPU, and so on")
    return device


class PlacedStage(StrictModel):
    """Where a stage of any kind runs."""

    device: Annotated[str, AfterValidator(_check_device)] = "cpu"
    """`cpu`, `cuda` (the first GPU that the server may use) or `cuda:1`, `cuda:2`, ..."""
    host: StageHostAddress | None = None
    """The stage host that runs it. None: this machine."""

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"

    @property
    def gpu(self) -> int | None:
        """Index of the GPU that is its only one. None: it runs on none, or `device` names none."""
        _, separator, index = self.device.partition(":")
        return int(index) if separator else None

    @property
    def num_gpus(self) -> int:
        """GPUs that it uses, from its own on."""
        return int(self.on_gpu)

    def on_its_gpu(self) -> Self:
        """These settings for a process that sees only its own GPUs."""
        return self if self.gpu is None else self.model_copy(update={"device": "cuda"})


class ArDeployment(PlacedStage):
    """Settings of an AR stage."""

    engine: Literal["vllm", "graphs"] = "vllm"
    """graphs: a step of all requests is one function, on CUDA one graph with the whole frame in it,
    and vLLM need not be installed. Only for models that have a talker for it."""
    dtype: Dtype = "float32"
    quantization: Literal["int8", "fp8"] | None = None
    """The layers' weights are held and multiplied in eight bits, with a scale for each output:
    int8, as whole numbers, on a CPU; fp8, as floats (E4M3), on a GPU. None: all weights are of
    `dtype`."""
    tensor_parallel: Annotated[int, Field(ge=1, le=64)] = 1
    """Devices that share each layer: GPUs from the stage's own on, or processes on a CPU. Only for
    models whose every layer is vLLM's own, such as thinkers."""
    slots: Annotated[int, Field(ge=1, le=1024)] = 16
    """Requests that step together."""
    max_model_len: Annotated[int, Field(ge=32)] = 1024
    """Positions (prompt and frames) that one request may use."""
    kv_positions: Annotated[int, Field(ge=32)] | None = None
    """Positions of all requests together that there is KV memory for. When there is none left,
    the youngest request gives its own up and computes it again later. None: enough for every slot
    at its full length."""
    max_num_batched_tokens: Annotated[int, Field(ge=16)] = 2048
    """Positions computed in one step; longer prompts are prefilled in parts. Running requests
    come first in every step, and wait for the prompts in it: as many positions as take less than
    half a frame's time delay no stream."""
    prefix_caching: bool = False
    cuda_graphs: bool = True
    """On CUDA, record the backbone and the completion of a step's frames (with `engine: graphs`,
    the whole step) as graphs while the stage loads, and replay them, if the model allows that. No
    effect on a CPU."""
    sampling: SamplingDefaults = SamplingDefaults()

    @property
    def num_gpus(self) -> int:
        return super().num_gpus * self.tensor_parallel

    @model_validator(mode="after")
    def check_quantization(self) -> ArDeployment:
        """oneDNN multiplies int8 on a CPU, and adds in float32 or bfloat16; vLLM's kernels for fp8
        are a GPU's, and take 16 bits."""
        here = f"here {self.device!r} and {self.dtype!r}"
        if self.quantization == "int8" and (self.on_gpu or self.dtype == "float16"):
            valid = "device is 'cpu', dtype 'float32' or 'bfloat16'"
            raise ValueError(f"quantization 'int8': {valid}; {here}")
        if self.quantization == "fp8" and (not self.on_gpu or self.dtype == "float32"):
            valid = "device is 'cuda', dtype 'bfloat16' or 'float16'"
            raise ValueError(f"quantization 'fp8': {valid}; {here}")
        return self

    @model_validator(mode="after")
    def check_engine(self) -> ArDeployment:
        """What only vLLM's engine does is not asked of the other one."""
        if self.engine == "vllm":
            return self
        asked = {
            "quantization": self.quantization is not None,
            "kv_positions": self.kv_positions is not None,
            "prefix_caching": self.prefix_caching,
            "tensor_parallel": self.tensor_parallel > 1,
        }
        named = [key for key, is_asked in asked.items() if is_asked]
        if named:
            raise ValueError(f"engine {self.engine!r}: does without {', '.join(named)}")
        return self


class DecodeWindow(StrictModel):
    """Frames that are decoded with a few frames of context instead of the whole past."""

    chunk_frames: Annotated[int, Field(ge=1)] = 25
    context_frames: Annotated[int, Field(ge=0)] = 25


class CodecDeployment(PlacedStage):
    """Settings of a codec stage."""

    colocate: str | None = None
    """Name of the AR stage in whose process it runs, as a thread. On one GPU the kernels of both
    then run at once; those of two processes take turns. A fault of either ends both. None: it has a
    process of its own."""
    slots: Annotated[int, Field(ge=1, le=1024)] = 16
    """Streams that are decoded at the same time."""
    max_chunk_frames: Annotated[int, Field(ge=1, le=256)] = 8
    """Frames of one stream that are decoded together at most."""
    max_batch_frames: Annotated[int, Field(ge=1, le=4096)] = 32
    """Rows times frames of one batch at most."""
    credit_s: Annotated[float, Field(ge=1)] = 30.0
    """Seconds of sound decoded ahead of a listener that does not read."""
    window: DecodeWindow | None = None
    """None: the decoder's state lasts as long as the stream, and streaming equals the whole."""
    cuda_graphs: bool = True
    """On CUDA, record the decoder's step as a graph while the stage loads, and replay it, if the
    model allows that. It takes the memory of one more slot. No effect on a CPU."""
    precision: Literal["float32", "tf32"] = "float32"
    """How exactly CUDA multiplies the decoder's float32 weights. tf32 is faster and rounds inputs
    to ten bits. No effect on a CPU."""


class TilingDeployment(StrictModel):
    """Large pictures are computed in overlapping tiles: less memory, slightly other pixels."""

    above: Annotated[int, Field(ge=1)]
    """Height times width in pixels."""
    size: Annotated[int, Field(ge=64, multiple_of=16)] = 256
    """Pixels of a tile's side, as the next."""
    stride: Annotated[int, Field(ge=16, multiple_of=16)] = 192
    """Pixels from one tile to the next."""

    @model_validator(mode="after")
    def check_overlap(self) -> TilingDeployment:
        """Tiles leave no gap."""
        if self.stride > self.size:
            raise ValueError(f"stride {self.stride} must be at most size {self.size}")
        return self


class FeedForwardDeployment(PlacedStage):
    """Settings of a feed-forward stage."""

    slots: Annotated[int, Field(ge=1, le=1024)] = 16
    """Requests that wait for an output at the same time."""
    max_batch: Annotated[int, Field(ge=1, le=256)] = 8
    """Inputs that are computed together at most."""
    kept_mib: Annotated[int, Field(ge=0)] = 64
    """Memory for outputs that are kept for later requests with the same input."""
    credit_s: Annotated[float, Field(ge=1)] = 30.0
    """Seconds of sound made ahead of a listener that does not read; only for a stage that makes
    sound."""
    tiling: TilingDeployment | None = None
    """Only for stages that encode or decode pictures. None: pictures are never tiled."""


class DiffusionDeployment(PlacedStage):
    """Settings of a diffusion stage."""

    dtype: Dtype = "float32"
    slots: Annotated[int, Field(ge=1, le=1024)] = 16
    """Pictures that are drawn at the same time; file renders take at most half of them."""
    max_tokens: Annotated[int, Field(ge=1)] = 65_536
    """Most tokens of all pictures that share a forward; this bounds its memory. A single picture
    may have more."""
    max_wait_s: Annotated[float, Field(gt=0)] = 60.0
    """A request that others would hold up for longer is rejected."""
    cache: StepCache | None = None
    """How steps that are near the one before are shortened, at a price in likeness. None: every
    step is computed."""
    parallel: ParallelStage | None = None
    """None: one process computes each forward."""
    hooked: HookedStage | None = None
    """None: the packed executor. Needs the extra `diffusers`."""

    @property
    def num_gpus(self) -> int:
        return super().num_gpus * (1 if self.parallel is None else self.parallel.ranks)

    @model_validator(mode="after")
    def check_gpus(self) -> DiffusionDeployment:
        """Ranks have a GPU each, from the first one on."""
        if self.parallel is not None and self.gpu is not None:
            raise ValueError(f"device {self.device!r}: with `parallel` it is 'cuda' or 'cpu'")
        return self


class RecognitionDeployment(PlacedStage):
    """Settings of a recognition stage."""

    dtype: Literal["int8", "float32", "float16", "bfloat16"] = "int8"
    """In which the model multiplies."""
    slots: Annotated[int, Field(ge=1, le=1024)] = 64
    """Windows of sound that the stage holds at the same time."""
    max_batch: Annotated[int, Field(ge=1, le=64)] = 1
    """Windows that are recognized together at most."""


StageDeployment = (
    ArDeployment
    | CodecDeployment
    | FeedForwardDeployment
    | DiffusionDeployment
    | RecognitionDeployment
)


@dataclass(frozen=True, slots=True)
class KindSupport:
    deployment: type[StageDeployment]
    builder: str
    """`package.module:function` that builds one from its spec, a checkpoint and a deployment;
    imported only in the processes that run such a stage."""
    needs: str
    """`package.module:function` that imports, for the same, what the stage needs, and returns a
    function of what it will hold on its device: bytes, by what takes them. None is allocated."""
    imports: str | None = None
    """Module that the fork server imports for such stages on a CPU, in addition to their
    factories."""


KINDS: Mapping[StageKind, KindSupport] = {
    StageKind.AR: KindSupport(
        ArDeployment,
        "cantata.stages.ar:build_stage",
        "cantata.stages.ar.needs:prepare_needs",
        "cantata.stages.ar.imports",
    ),
    StageKind.CODEC: KindSupport(
        CodecDeployment, "cantata.stages.codec:build_stage", "cantata.stages.codec:prepare_needs"
    ),
    StageKind.FEED_FORWARD: KindSupport(
        FeedForwardDeployment,
        "cantata.stages.feed_forward:build_stage",
        "cantata.stages.feed_forward:prepare_needs",
    ),
    StageKind.DIFFUSION: KindSupport(
        DiffusionDeployment,
        "cantata.stages.diffusion:build_stage",
        "cantata.stages.diffusion:prepare_needs",
    ),
    StageKind.RECOGNITION: KindSupport(
        RecognitionDeployment,
        "cantata.stages.recognition:build_stage",
        "cantata.stages.recognition:prepare_needs",
    ),
}


class ConversationDeployment(StrictModel):
    """Who transcribes and answers in `/v1/realtime`; command-line options take precedence."""

    chat_url: str | None = None
    """Base address of a server with OpenAI's `/chat/completions`. None: a few rules answer."""
    chat_model: str | None = None
    transcription_url: str | None = None
    """Base address of a server with OpenAI's `/audio/transcriptions`. None: the server's own models
    that transcribe."""
    transcription_model: str | None = None


class Deployment(StrictModel):
    """How one model is served on this machine."""

    async_chunk: bool = True
    """True: every edge streams. False: every edge waits for its request's end."""
    chunk_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """Silence from the pipeline after which a request fails."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Limit for a stage to become ready. After that the server exits, or, if the stage ran
    before, its process is replaced."""
    idle_unload_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds after a model's last request until its stages' processes end; the next request starts
    them again, and waits. None: they run as long as the server."""
    max_input_characters: Annotated[int, Field(ge=1)] = 100_000
    """The longest text that one utterance may have."""
    voice_aliases: Mapping[str, str] = {}
    """More names of the model's voices, such as those of another server that clients are set up
    for: alias -> a voice's id, name or other alias."""
    speaks: str | None = None
    """Name of the model of this server that speaks this one's answers, for one that only writes.
    None: the first one that speaks texts, if it takes nothing but texts."""
    options: Mapping[str, Any] = {}
    """The model's own settings, which its plug-in checks; most have none."""
    realtime: ConversationDeployment = ConversationDeployment()
    cluster: ClusterOptions | None = None
    """Several machines; read by `cantata deploy` and `cantata serve --cluster`."""
    stages: Mapping[str, StageDeployment]

    @model_validator(mode="after")
    def check_cluster(self) -> Deployment:
        """The cluster's section knows the stages."""
        if self.cluster is not None:
            on_gpu = [name for name, stage in self.stages.items() if stage.on_gpu]
            self.cluster.check_stages(on_gpu, self.stages, self.hosts)
        return self

    @model_validator(mode="after")
    def check_colocation(self) -> Deployment:
        """Stages that share a process are on one machine, on one device, and multiply alike."""
        for name, stage in self.stages.items():
            if not isinstance(stage, CodecDeployment) or stage.colocate is None:
                continue
            where, first = f"{name}: colocate {stage.colocate!r}", self.stages.get(stage.colocate)
            if not isinstance(first, ArDeployment):
                valid = [n for n, other in self.stages.items() if isinstance(other, ArDeployment)]
                raise ValueError(f"{where}: valid: {valid}")
            if stage.host is not None or first.host is not None:
                raise ValueError(f"{where}: both stages run on this machine, without `host`")
            if stage.device != first.device:
                devices = f"{stage.device!r} and {first.device!r}"
                raise ValueError(f"{where}: both stages have one device, not {devices}")
            if stage.precision == "tf32" and first.dtype == "float32":
                raise ValueError(
                    f"{where}: precision 'tf32' holds for all float32 products of a process, and "
                    f"{stage.colocate!r} has dtype 'float32'"
                )
        return self

    def sharing(self, stage: str) -> tuple[str, ...]:
        """The names of the stages that are in one process with this one, itself included, in the
        order in which they load."""
        own, first = self.stages[stage], stage
        if isinstance(own, CodecDeployment) and own.colocate is not None:
            first = own.colocate
        others = (
            name
            for name, other in self.stages.items()
            if isinstance(other, CodecDeployment) and other.colocate == first
        )
        return (first, *others)

    @model_validator(mode="after")
    def check_unloading(self) -> Deployment:
        """Only what runs here is unloaded."""
        if self.idle_unload_s is not None and self.hosts:
            raise ValueError(f"idle_unload_s: stages {sorted(self.hosts)} run on other machines")
        return self

    @property
    def hosts(self) -> Mapping[str, str]:
        """The hosts of the stages that run on other machines, by stage."""
        return {name: stage.host for name, stage in self.stages.items() if stage.host is not None}

    @property
    def placed_here(self) -> Deployment:
        stages = {n: stage.model_copy(update={"host": None}) for n, stage in self.stages.items()}
        return self.model_copy(update={"stages": stages})

    @property
    def sampled(self) -> bool:
        """Whether requests that set no temperature draw their codes, so that the seed matters."""
        ar = [stage for stage in self.stages.values() if isinstance(stage, ArDeployment)]
        return any(stage.sampling.temperature > 0 for stage in ar)

    def only(self, stages: Collection[str]) -> Deployment:
        kept = {name: stage for name, stage in self.stages.items() if name in stages}
        cluster = self.cluster and self.cluster.only(stages)
        return self.model_copy(update={"stages": kept, "cluster": cluster})

    def unloaded_when_idle(self, idle_s: float) -> Deployment:
        """This deployment with `idle_unload_s`, unless it has one, or stages on other machines."""
        if self.idle_unload_s is not None or self.hosts:
            return self
        return self.model_copy(update={"idle_unload_s": idle_s})

    def with_dtype(self, dtype: Dtype) -> Deployment:
        """This deployment with this dtype in every stage that has one. Raises ConfigError: a stage
        cannot have it."""
        stages = {
            name: _validate(type(stage), {**stage.model_dump(), "dtype": dtype}, name)
            if isinstance(stage, ArDeployment | DiffusionDeployment)
            else stage
            for name, stage in self.stages.items()
        }
        return self.model_copy(update={"stages": stages})


def load_deployment(path: Path, pipeline: PipelineSpec) -> Deployment:
    """Read a deployment for a pipeline. Raises ConfigError: unreadable file, unknown key, bad value
    or wrong stage; lists what is valid."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a deployment is a mapping with {list_keys(Deployment)}")
    return parse_deployment(raw, pipeline, where=str(path))


def parse_deployment(
    raw: Mapping[str, Any], pipeline: PipelineSpec, where: str = "deployment"
) -> Deployment:
    """Validate a deployment's plain data against a pipeline; errors as in `load_deployment`."""
    stages = raw.get("stages", {})
    if not isinstance(stages, dict):
        raise ConfigError(f"{where}: stages is a mapping from stage name to settings")
    names = [stage.name for stage in pipeline.stages]
    if set(stages) != set(names):
        raise ConfigError(f"{where}: stages are {sorted(map(str, stages))}; valid: {names}")
    typed: dict[str, StageDeployment] = {}
    for stage in pipeline.stages:
        model = KINDS[stage.kind].deployment
        settings = _validate(model, stages[stage.name] or {}, f"{where}: {stage.name}")
        if isinstance(settings, ArDeployment) and settings.engine == "graphs" and not stage.plain:
            raise ConfigError(
                f"{where}: {stage.name}: engine 'graphs': this model runs on 'vllm' alone"
            )
        typed[stage.name] = settings
    return _validate(Deployment, {**raw, "stages": typed}, where)


def _validate(model: type[M], raw: Any, where: str) -> M:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(explain(error, model, where)) from error
