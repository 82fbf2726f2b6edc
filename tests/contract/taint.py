"""Where values from outside reach a path or a number without the gate `core/untrusted.py`: a reading of the code.

A value is from outside when it is read under one of the names in `SOURCES`, by a subscript or `.get`, from anything. It
stays so through names, attributes, subscripts, methods, formatting, arithmetic and containers of the same function, and
through functions whose result it is. A call of the gate ends it, and so does one that returns no text, like `len`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = {"metadata", "annotations", "labels", "data", "ansible_facts"}
"""Keys under which objects of the cluster and facts of hosts hold what their writers chose."""
GATE = {
    "text", "line", "number", "whole", "moment", "name", "is_name", "clean", "plain", "path_below", "open_below",
    "checked_attempt",
}  # fmt: skip
"""Functions that return a checked value."""
ENDS = {"len", "bool", "isinstance", "hash", "id", "any", "all", "range"}
"""Functions whose result is no text of the value."""
NUMBERS = {"int", "float"}
PATHS = {"open", "makedirs", "mkdir", "unlink", "rmtree", "rename", "Path", "listdir", "scandir", "chown", "chmod"}
PATH_MODULES = {"os", "shutil", "path", "posixpath"}


IMPORTED = {"ansible/module_utils/trainyard": "module_utils/trainyard", "console": "workloads/console"}
"""Names by which packages are imported -> their folders."""
FOLDERS = (*IMPORTED.values(), "trainyard", "library", "plugins", "workloads/data_import")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[str, str]
"""File and name of a function."""
Resolve = Callable[[ast.Call], "Place | None"]
"""A call -> the project's function that it calls; None for any other."""


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


class _Function(ast.NodeVisitor):
    """The values from outside in one function."""

    def __init__(self, resolve: Resolve, known: set[Place], tainted: set[Place], parameters: set[str]) -> None:
        self._resolve, self._known, self._tainted = resolve, known, tainted
        self.names = set(parameters)
        self.passes: set[tuple[Place, int | str]] = set()
        self.returns = False
        self.found: list[tuple[int, str]] = []

    def is_tainted(self, node: ast.AST | None) -> bool:
        match node:
            case None | ast.Constant():
                return False
            case ast.Name():
                return node.id in self.names
            case ast.Subscript():
                key = node.slice.value if isinstance(node.slice, ast.Constant) else None
                return key in SOURCES or self.is_tainted(node.value)
            case ast.Call():
                return self._call(node)
            case ast.Compare() | ast.BinOp(op=ast.Sub() | ast.FloorDiv()):
                # A truth, or a number: texts have none of these operators.
                return False
            case ast.Lambda():
                return self.is_tainted(node.body)
            case ast.IfExp():
                return self.is_tainted(node.body) or self.is_tainted(node.orelse)
            case ast.NamedExpr():
                return self.is_tainted(node.value)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self._comprehensions(node.generators)
                return self.is_tainted(node.elt)
            case ast.DictComp():
                self._comprehensions(node.generators)
                return self.is_tainted(node.key) or self.is_tainted(node.value)
            case _:
                return any(self.is_tainted(child) for child in ast.iter_child_nodes(node))

    def _call(self, node: ast.Call) -> bool:
        called = _called(node)
        if called in GATE or called in ENDS or called in NUMBERS:
            return False
        if isinstance(node.func, ast.Attribute):
            first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if node.func.attr == "get" and first in SOURCES:
                return True
            if self.is_tainted(node.func.value):
                return True
        if (place := self._resolve(node)) in self._known:
            # Its own reading says whether what it is given comes out again.
            return place in self._tainted
        return any(self.is_tainted(each) for each in (*node.args, *(each.value for each in node.keywords)))

    def _comprehensions(self, generators: list[ast.comprehension]) -> None:
        for each in generators:
            if self.is_tainted(each.iter):
                self._bind(each.target)

    def _bind(self, target: ast.AST) -> None:
        self.names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.is_tainted(node.value):
            for target in node.targets:
                if isinstance(target, ast.Name | ast.Tuple | ast.List):
                    self._bind(target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if self.is_tainted(node.value):
            self._bind(node.target)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        if self.is_tainted(node.value):
            self._bind(node.target)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        if self.is_tainted(node.iter):
            self._bind(node.target)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        self.returns |= self.is_tainted(node.value)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        self.returns |= self.is_tainted(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        sink = _sink(node)
        if sink and any(self.is_tainted(each) for each in (*node.args, *(each.value for each in node.keywords))):
            self.found.append((node.lineno, sink))
        if place := self._resolve(node):
            self.passes |= {(place, number) for number, each in enumerate(node.args) if self.is_tainted(each)}
            self.passes |= {(place, each.arg) for each in node.keywords if each.arg and self.is_tainted(each.value)}
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Div) and self.is_tainted(node.right):
            self.found.append((node.lineno, "a path, by /"))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """An inner function is looked at by itself."""


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _sink(node: ast.Call) -> str:
    called = _called(node)
    if called in NUMBERS and isinstance(node.func, ast.Name):
        return called
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value
        module = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        inside = module in PATH_MODULES and called in {*PATHS, "join", "realpath", "exists", "stat"}
        return f"{module}.{called}" if inside else ""
    return called if called in PATHS else ""


def functions(tree: ast.AST) -> Iterator[Function]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def findings(files: dict[str, str]) -> list[Finding]:
    """Every value from outside that reaches a path or a number.

    :param files: path -> text of a Python file.
    """
    trees = {path: ast.parse(text) for path, text in files.items()}
    resolvers = {path: _resolver(path, tree, files) for path, tree in trees.items()}
    known = [(path, each) for path, tree in trees.items() for each in functions(tree)]
    returning: set[Place] = set()
    passed: set[tuple[Place, int | str]] = set()
    uses = [{resolvers[path](call) for call in ast.walk(each) if isinstance(call, ast.Call)} for path, each in known]
    places = {(path, each.name) for path, each in known}
    looks: list[tuple[str, Function, _Function]] = []
    changed: set[Place] = set()
    while True:
        # Only what a change of the last round can have changed is looked at again.
        looks = [
            (path, each, _look(path, each, resolvers[path], places, returning, passed))
            if not looks or (path, each.name) in changed or use & changed
            else looks[number]
            for number, ((path, each), use) in enumerate(zip(known, uses, strict=True))
        ]
        now = {(path, each.name) for path, each, look in looks if look.returns and not _returns_numbers(each)}
        calls = {call for _, _, look in looks for call in look.passes if call[0][1] not in GATE}
        if now <= returning and calls <= passed:
            break
        changed = {*(now - returning), *(place for place, _ in calls - passed)}
        returning |= now
        passed |= calls
    return sorted(
        {Finding(path, line, each.name, sink) for path, each, look in looks for line, sink in look.found},
        key=lambda found: (found.path, found.line, found.sink),
    )


def _resolver(path: str, tree: ast.Module, files: dict[str, str]) -> Resolve:
    """Which function of the project a call in a file is: its own, a method of its classes, or an imported one."""
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
    own = {each.name for each in functions(tree)}

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
    """The path of an imported module without its suffix."""
    inside = (node.module or "").replace(".", "/")
    if not node.level:
        for prefix, folder in IMPORTED.items():
            if inside.startswith(prefix):
                return folder + inside.removeprefix(prefix)
        return inside
    base = "/".join(path.split("/")[: -node.level])
    return f"{base}/{inside}".rstrip("/")


def _returns_numbers(function: Function) -> bool:
    """Whether a function is of the gate, or declares that it returns numbers; mypy holds it to that."""
    declared = ast.unparse(function.returns) if function.returns else ""
    return function.name in GATE or bool(re.fullmatch(r"(?:tuple|int|float|bool|None|[\[\], .|])+", declared))


def _look(
    path: str,
    function: Function,
    resolve: Resolve,
    places: set[Place],
    returning: set[Place],
    passed: set[tuple[Place, int | str]],
) -> _Function:
    named = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    named = named[1:] if named[:1] in (["self"], ["cls"]) else named
    here = {argument for place, argument in passed if place == (path, function.name)}
    known = {each for each in here if isinstance(each, str)}
    known |= {named[each] for each in here if isinstance(each, int) and each < len(named)}
    look = _Function(resolve, places, returning, known)
    # Twice: a name may be bound below the place at which a loop uses it.
    for _ in range(2):
        look.found.clear()
        for statement in function.body:
            look.visit(statement)
    return look


def product_files(root: Path) -> dict[str, str]:
    """The product's Python files that read the cluster, hosts, logs and records: path below the root -> text."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    product = [path for path in paths if not path.name.endswith("_test.py")]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in product}
