"""The architecture, as imports: a DAG in the documented directions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = {
    "cantata": ROOT / "backend" / "cantata",
    "cantata_layers": ROOT / "models" / "cantata_layers",
    "cantata_models": ROOT / "models" / "cantata_models",
    "cantata_web": ROOT / "frontend" / "cantata_web",
}

MAY_IMPORT: dict[str, set[str]] = {
    "cantata.contract": set(),
    "cantata.utils": set(),
    "cantata.text": {"contract"},
    "cantata.scheduling": {"contract"},
    "cantata.ipc": {"contract", "utils"},
    "cantata.audio": {"contract", "text"},
    "cantata.config": {"contract"},
    "cantata.telemetry": {"contract"},
    "cantata.metrics": {"contract", "telemetry"},
    "cantata.client": {"contract"},
    "cantata.stages": set(),
    "cantata.stages.common": {"contract"},
    "cantata.stages.ar": {"contract", "config", "stages.common"},
    "cantata.stages.feed_forward": {"contract", "config", "scheduling", "stages.common"},
    "cantata.stages.recognition": {"contract", "config", "stages.common"},
    "cantata.stages.codec": {
        "contract",
        "config",
        "scheduling",
        "stages.common",
    },
    "cantata.stages.diffusion": {
        "contract",
        "config",
        "scheduling",
        "stages.common",
    },
    "cantata.stages.process": {
        "contract",
        "config",
        "ipc",
        "scheduling",
        "stages.common",
        "utils",
    },
    "cantata.pipeline": {
        "contract",
        "audio",
        "config",
        "ipc",
        "text",
        "scheduling",
        "stages",
        "utils",
    },
    "cantata.media": {"contract"},
    "cantata.watermark": {"contract", "media"},
    "cantata.lexicons": {"contract", "text"},
    "cantata.documents": {"contract", "text"},
    "cantata.jobs": {"contract", "audio", "documents", "text"},
    "cantata.references": {"contract", "media"},
    "cantata.speech_input": {"contract", "audio", "media"},
    "cantata.api": {
        "contract",
        "audio",
        "documents",
        "jobs",
        "text",
        "lexicons",
        "media",
        "metrics",
        "speech_input",
        "references",
        "telemetry",
        "utils",
        "watermark",
    },
    "cantata.distributed.link": {"distributed", "ipc", "contract"},
    "cantata.distributed.edge": {"audio", "distributed", "contract", "scheduling", "utils"},
    "cantata.distributed.replica": {"audio", "distributed", "contract", "config", "utils"},
    "cantata.distributed.ray": {"distributed", "contract", "config"},
    "cantata.distributed.stages": {
        "distributed",
        "config",
        "ipc",
        "contract",
        "pipeline",
        "utils",
        "stages.process",
    },
    "cantata.distributed": {"ipc", "contract", "config"},
    "cantata.serving": {
        "api",
        "distributed",
        "config",
        "contract",
        "ipc",
        "pipeline",
        "utils",
    },
    "cantata.deploy": {
        "api",
        "distributed",
        "config",
        "contract",
        "pipeline",
        "serving",
        "utils",
    },
    "cantata.cli": {
        "api",
        "audio",
        "client",
        "config",
        "contract",
        "deploy",
        "documents",
        "jobs",
        "lexicons",
        "pipeline",
        "media",
        "references",
        "speech_input",
        "serving",
        "utils",
        "ipc",
        "stages.codec",
        "stages.common",
        "text",
        "watermark",
    },
}
"""Package or module -> what of `cantata` it may import beside itself; longest prefix counts."""

WITHIN_CONTRACT = {
    "data": set[str](),
    "model": {"data"},
    "process": {"data"},
    "catalogue": {"data"},
    "voices": {"data"},
    "service": {"data", "process"},
    "chat_service": {"data", "service"},
    "image_service": {"data", "service", "chat_service"},
    "transcription_service": {"data", "model", "service", "image_service"},
}
"""The contract's parts, one for each of its readers -> what they may import of each other."""
FOR_MODELS = ("cantata.contract.data.", "cantata.contract.model.")


WEB = SOURCES["cantata_web"]
IN_TWO_PACKAGES = (WEB / "sources.py", WEB / "streaming_speech.py")
"""Modules of which `frontend/gradio_streaming_speech` makes a package with another name."""


def modules(package: str) -> Iterator[tuple[str, Path]]:
    root = SOURCES[package]
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        if "tests" not in parts:
            yield ".".join(parts).removesuffix(".__init__"), path


@cache
def imports(path: Path) -> tuple[str, ...]:
    """What a module imports, each name in full."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path in IN_TWO_PACKAGES, f"{path}: imports are absolute"
            module = f"{path.parent.name}.{node.module}" if node.level else node.module or ""
            names += (f"{module}.{alias.name}" for alias in node.names)
    return tuple(names)


def layer(module: str) -> str:
    matches = [p for p in MAY_IMPORT if module == p or module.startswith(p + ".")]
    assert matches, f"{module} belongs to no layer of the architecture"
    return max(matches, key=len)


@pytest.mark.parametrize(
    ("module", "path"),
    [(m, p) for m, p in modules("cantata") if m not in {"cantata", "cantata.__main__"}],
)
def test_the_backend_is_a_dag(module: str, path: Path) -> None:
    own = layer(module)
    for target in imports(path):
        if target.startswith("cantata.") and not target.startswith("cantata.__version__"):
            other = layer(target)
            inner = target.removeprefix("cantata.").split(".")[0]
            named = {inner, other.removeprefix("cantata.")}
            allowed = other == own or named & MAY_IMPORT[own] or other.startswith(own + ".")
            assert allowed, f"{module} imports {target}"


def test_the_parts_of_the_contract_stay_apart() -> None:
    """What travels knows neither models nor processes, and those do not know each other."""
    for module, path in modules("cantata"):
        if module.startswith("cantata.contract."):
            part = module.split(".")[2]
            parts = {t.split(".")[2] for t in imports(path) if t.startswith("cantata.contract.")}
            assert parts <= WITHIN_CONTRACT[part] | {part}, module


def test_the_layers_themselves_have_no_cycle() -> None:
    graph = {name.removeprefix("cantata.").split(".")[0]: set[str]() for name in MAY_IMPORT}
    for name, targets in MAY_IMPORT.items():
        graph[name.removeprefix("cantata.").split(".")[0]] |= {t.split(".")[0] for t in targets}
    done: set[str] = set()
    while len(done) < len(graph):
        free = {n for n, targets in graph.items() if n not in done and targets - {n} <= done}
        assert free, f"cycle among {sorted(set(graph) - done)}"
        done |= free


def test_only_the_ar_engine_imports_vllm_in_the_backend() -> None:
    for module, path in modules("cantata"):
        if not module.startswith("cantata.stages.ar"):
            assert not any(t.split(".")[0] == "vllm" for t in imports(path)), module


def test_one_module_imports_ray() -> None:
    """What Ray changes is changed there."""
    for module, path in modules("cantata"):
        if module != "cantata.distributed.ray.serve_api":
            assert not any(t.split(".")[0] == "ray" for t in imports(path)), module


ENGLISH_TOO = {"cantata.text.patterns": {"whisper"}}
"""Models' names that stand in a module as words of English."""


def test_the_backend_names_no_model() -> None:
    names = [p.name for p in SOURCES["cantata_models"].iterdir() if (p / "__init__.py").exists()]
    assert "solo" in names
    for module, path in modules("cantata"):
        words = path.read_text(encoding="utf-8").replace('"', " ").replace("'", " ").split()
        found = set(names) & {word.strip("`.,:()").lower() for word in words}
        assert found <= ENGLISH_TOO.get(module, set()), module
        assert "cantata_models" not in path.read_text(encoding="utf-8"), module


def test_models_import_the_contract_alone_and_never_each_other() -> None:
    for module, path in modules("cantata_models"):
        own = ".".join(module.split(".")[:2])
        for target in imports(path):
            top = target.split(".")[0]
            if top == "cantata":
                assert target.startswith(FOR_MODELS), f"{module} imports {target}"
            if top == "cantata_models":
                assert target.startswith(own), f"{module} imports {target}"


def test_what_models_share_knows_the_contract_alone() -> None:
    for module, path in modules("cantata_layers"):
        for target in imports(path):
            top = target.split(".")[0]
            if top == "cantata":
                assert target.startswith(FOR_MODELS), f"{module} imports {target}"
            assert top not in {"cantata_models", "cantata_web"}, f"{module} imports {target}"


def test_the_front_end_speaks_only_http_and_websocket() -> None:
    for module, path in modules("cantata_web"):
        for target in imports(path):
            assert target.split(".")[0] not in {"cantata", "cantata_models"}, (
                f"{module} imports {target}"
            )


NAMED = re.compile(r"(cantata_models|cantata_layers)(\.\w+)+:\w+")


def test_what_plug_ins_name_exists_where_they_say() -> None:
    found = 0
    for module, path in modules("cantata_models"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if NAMED.fullmatch(node.value) is None:
                continue
            found += 1
            target, _, name = node.value.partition(":")
            assert name in top_level_names(ROOT / "models", target), f"{module}: {node.value}"
    assert found > 40


def top_level_names(root: Path, module: str) -> set[str]:
    path = root.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_a_class_name_stands_once_in_the_tree() -> None:
    """Whoever searches for a class finds one."""
    sources = {
        **SOURCES,
        **{name: ROOT / "benchmarks" / name for name in ("cantata_bench", "gpu")},
    }
    found: dict[str, list[Path]] = {}
    for source in sources.values():
        for path in sorted(source.rglob("*.py")):
            if "tests" not in path.parts:
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.ClassDef):
                        found.setdefault(node.name, []).append(path.relative_to(ROOT))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
