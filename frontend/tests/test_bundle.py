"""The linked script does what its modules do; what cannot be linked is an error that says why."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import cantata_web
from cantata_web.bundle import BundleError, link, link_part, list_modules
from cantata_web.page import build_page
from cantata_web.sources import SCRIPTS

MODULES = {
    "main.js": (
        'import {\n  Shape,\n  grown as larger,\n} from "./shapes/shape.js";\n'
        'import { count } from "./shapes/count.js";\n'
        "const SIZE = 1;\n"
        "console.log(JSON.stringify([SIZE, larger(new Shape()).size, count(), count()]));\n"
    ),
    "shapes/shape.js": (
        'import { count } from "./count.js";\n'
        "const SIZE = 10;\n"
        "export class Shape {\n  size = SIZE + count();\n}\n"
        "export function grown(shape) {\n  return { size: shape.size * LARGER };\n}\n"
        "export const LARGER = 2;\n"
    ),
    "shapes/count.js": "let counted = 0;\nexport const count = () => (counted += 1);\n",
}

Write = Callable[[dict[str, str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(modules: dict[str, str]) -> Path:
        for name, source in modules.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(source, encoding="utf-8")
        return tmp_path

    return write


def run_module(node: str, script: Path) -> str:
    done = subprocess.run([node, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_linked_script_does_what_the_modules_do(write: Write, node: str) -> None:
    """Names that two modules both use stay apart, and a module that two import runs once."""
    folder = write({**MODULES, "package.json": '{"type": "module"}'})
    linked = folder / "linked.js"
    linked.write_text(link(folder, "main.js", {}), encoding="utf-8")
    given = run_module(node, folder / "main.js")
    assert run_module(node, linked) == given == "[1,22,2,3]\n"


def test_a_script_that_is_loaded_apart_is_found_by_its_given_url(write: Write) -> None:
    folder = write({"a/main.js": 'load(new URL("other.js", import.meta.url));\n'})
    assert "load(`<other>`);" in link(folder, "a/main.js", {"a/other.js": "`<other>`"})


def test_comments_are_left_out_and_lines_stay(write: Write) -> None:
    source = '// About it.\n\n/**\n * More.\n */\nconst url = "a//b"; // why\nlast();\n'
    (linked,) = re.findall(
        r"\{\n(.*)return \{", link(write({"a.js": source}), "a.js", {}), re.DOTALL
    )
    assert linked == '\n\n\n\n\nconst url = "a//b"; // why\nlast();\n'


def test_a_part_that_is_loaded_later_shares_the_modules_it_needs(write: Write, node: str) -> None:
    """Those of the script that loads it, and those of other parts: each runs once."""
    folder = write(
        {
            "package.json": '{"type": "module"}',
            "main.js": 'import { count } from "./shapes/count.js";\n'
            'const one = import("./one.js");\nconst two = import("./two.js");\n'
            "void Promise.all([one, two])"
            ".then(([a, b]) => console.log(a.of(), b.of(), count()));\n",
            "shapes/count.js": MODULES["shapes/count.js"],
            "shapes/late.js": 'console.log("late");\nexport const LATE = 10;\n',
            **{
                f"{name}.js": 'import { count } from "./shapes/count.js";\n'
                'import { LATE } from "./shapes/late.js";\n'
                "export const of = () => LATE * count();\n"
                for name in ("one", "two")
            },
        }
    )
    given = run_module(node, folder / "main.js")
    shared = list_modules(folder, "main.js")
    assert shared == {"main.js", "shapes/count.js"}
    urls = {}
    for name in ("one.js", "two.js"):
        (folder / f"part-{name}").write_text(link_part(folder, name, {}, shared), encoding="utf-8")
        urls[name] = f'"./part-{name}"'
    linked = folder / "linked.js"
    linked.write_text(link(folder, "main.js", urls), encoding="utf-8")
    assert run_module(node, linked) == given == "late\n10 20 3\n"


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"main.js": 'import { a } from "./gone.js";\n'}, "main.js imports gone.js: no such file"),
        ({"main.js": 'import a from "./a.js";\n'}, "main.js: cannot link 'import a from"),
        ({"main.js": "export let a = 1;\n"}, "main.js: cannot link 'export let a"),
        ({"main.js": "const a = await import(name);\n"}, "main.js: cannot link 'const a"),
        ({"main.js": 'const a = import("./a.js");\n'}, "main.js loads a.js, which has no URL"),
        ({"main.js": "tell(import.meta.url);\n"}, "main.js: cannot link 'tell"),
        (
            {"main.js": 'load(new URL("a.js", import.meta.url));\n'},
            "main.js loads a.js, which has no URL",
        ),
        (
            {
                "main.js": 'import { a } from "./a.js";\n',
                "a.js": 'import { b } from "./main.js";\nexport const a = 1;\n',
            },
            "modules import each other: main.js -> a.js -> main.js",
        ),
    ],
)
def test_what_cannot_be_linked_is_said(write: Write, modules: dict[str, str], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        link(write(modules), "main.js", {})


def test_every_module_is_in_a_script() -> None:
    assets = [asset.body.decode() for asset in build_page().assets if ".js" in asset.name]
    component = cantata_web.StreamingSpeech(render=False).js_on_load
    names = [path.relative_to(SCRIPTS).as_posix() for path in SCRIPTS.rglob("*.js")]
    assert len(names) > 30
    scripts = "".join([*assets, component])
    unused = [n for n in names if re.search(rf'\$modules\["{n}"\] (\?\?)?= ', scripts) is None]
    assert unused == []
