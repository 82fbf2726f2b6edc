"""Find values from outside in all files: read each function until no call passes a new value to a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taint import GATE, SOURCES, Function, Place, Reading, Resolve

IMPORTED = {"ansible/module_utils/trainyard": "src/trainyard", "trainyard": "src/trainyard"}
"""Names by which packages are imported -> their folders."""
FOLDERS = ("src/trainyard", "library", "plugins", "workloads/data_import")


@dataclass(frozen=True)
class Finding:
    """A value from outside that reaches a sink.

    :param sink: `int`, `float`, `open`, `os.path.join` and so on.
    """

    path: str
    line: int
    function: str
    sink: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.function} passes a value from outside to {self.sink}"


def functions(tree: ast.AST) -> Iterator[Function]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def findings(files: dict[str, str]) -> list[Finding]:
    """Return every value from outside that reaches a path or a number.

    :param files: path -> text of a Python file.
    """
    trees = {path: ast.parse(text) for path, text in files.items()}
    inside = {path: list(functions(tree)) for path, tree in trees.items()}
    resolvers = {
        path: _resolver(path, tree, {each.name for each in inside[path]}, files) for path, tree in trees.items()
    }
    known = [(path, each) for path, own in inside.items() for each in own]
    returning: set[Place] = set()
    passed: set[tuple[Place, int | str]] = set()
    places = {(path, each.name) for path, each in known}
    uses: list[set[Place | None]] = []
    looks: dict[int, Reading] = {}
    todo: list[int] = []
    for number, (path, each) in enumerate(known):
        inner = list(ast.walk(each))
        uses.append({resolvers[path](node) for node in inner if isinstance(node, ast.Call)})
        # Without a name of a source, a value from outside arrives only by a call, which counts as a change below.
        if any(isinstance(node, ast.Constant) and node.value in SOURCES for node in inner):
            todo.append(number)
    while todo:
        looks |= {
            number: _look(*known[number], resolvers[known[number][0]], places, returning, passed) for number in todo
        }
        now = {
            (known[number][0], known[number][1].name)
            for number, look in looks.items()
            if look.returns and not _returns_numbers(known[number][1])
        }
        calls = {call for look in looks.values() for call in look.passes if call[0][1] not in GATE}
        changed = {*(now - returning), *(place for place, _ in calls - passed)}
        returning |= now
        passed |= calls
        # Read again only functions that the changes of the last round can affect.
        todo = [n for n, (path, each) in enumerate(known) if (path, each.name) in changed or uses[n] & changed]
    return sorted(
        {
            Finding(known[number][0], line, known[number][1].name, sink)
            for number, look in looks.items()
            for line, sink in look.found
        },
        key=lambda found: (found.path, found.line, found.sink),
    )


def _resolver(path: str, tree: ast.Module, own: set[str], files: dict[str, str]) -> Resolve:
    """Return a function that resolves calls in a file: to its own functions, methods of its classes, or imported
    functions.

    :param own: names of the file's functions.
    """
    names: dict[str, Place] = {}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            local = alias.asname or alias.name
            base = _module(path, node)
            if (inner := f"{base}/{alias.name}.py") in files:
                modules[local] = inner
            elif f"{base}.py" in files:
                names[local] = (f"{base}.py", alias.name)

    def resolve(call: ast.Call) -> Place | None:
        function = call.func
        if isinstance(function, ast.Name):
            return (path, function.id) if function.id in own else names.get(function.id)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id in ("self", "cls"):
                return (path, function.attr)
            if function.value.id in modules:
                return (modules[function.value.id], function.attr)
        return None

    return resolve


def _module(path: str, node: ast.ImportFrom) -> str:
    """Return the path of an imported module without its suffix."""
    inside = (node.module or "").replace(".", "/")
    if not node.level:
        for prefix, folder in IMPORTED.items():
            if inside.startswith(prefix):
                return folder + inside.removeprefix(prefix)
        return inside
    base = "/".join(path.split("/")[: -node.level])
    return f"{base}/{inside}".rstrip("/")


def _returns_numbers(function: Function) -> bool:
    """Return whether a function belongs to the gate, or declares that it returns numbers; mypy enforces that."""
    declared = ast.unparse(function.returns) if function.returns else ""
    return function.name in GATE or bool(re.fullmatch(r"(?:tuple|int|float|bool|None|[\[\], .|])+", declared))


def _look(
    path: str,
    function: Function,
    resolve: Resolve,
    places: set[Place],
    returning: set[Place],
    passed: set[tuple[Place, int | str]],
) -> Reading:
    named = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    named = named[1:] if named[:1] in (["self"], ["cls"]) else named
    here = {argument for place, argument in passed if place == (path, function.name)}
    known = {each for each in here if isinstance(each, str)}
    known |= {named[each] for each in here if isinstance(each, int) and each < len(named)}
    look = Reading(resolve, places, returning, known)
    # Twice, because a loop may use a name that is bound further down.
    for _ in range(2):
        look.found.clear()
        for statement in function.body:
            look.visit(statement)
    return look


def product_files(root: Path) -> dict[str, str]:
    """Return the product's Python files that read the cluster, hosts, logs and records: path below the root -> text."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    product = [path for path in paths if not path.name.endswith("_test.py")]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in product}
