"""Find values from outside in one function that reach a path or a number without the gate `core/untrusted.py`.

A value is from outside if it is read under one of the names in `SOURCES`, by a subscript or `.get`, from any object. It
remains so through names, attributes, subscripts, methods, formatting, arithmetic and containers of the same function,
and through functions that return it. A call of the gate ends it, and so does a function that returns no text, like
`len`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

SOURCES = {"metadata", "annotations", "labels", "data", "ansible_facts"}
"""Keys under which cluster objects and host facts hold values that their writers chose."""
GATE = {
    "text", "line", "number", "whole", "moment", "name", "is_name", "clean", "plain", "path_below", "open_below",
    "checked_attempt",
}  # fmt: skip
"""Functions that return a checked value."""
ENDS = {"len", "bool", "isinstance", "hash", "id", "any", "all", "range"}
"""Functions whose result contains no text of the value."""
NUMBERS = {"int", "float"}
PATHS = {"open", "makedirs", "mkdir", "unlink", "rmtree", "rename", "Path", "listdir", "scandir", "chown", "chmod"}
PATH_MODULES = {"os", "shutil", "path", "posixpath"}


Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[str, str]
"""File and name of a function."""
Resolve = Callable[[ast.Call], "Place | None"]
"""Resolves a call to the called function of the project; None for any other."""


class Reading(ast.NodeVisitor):
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
                # The result is a boolean or a number: texts do not support these operators.
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
            # Its own reading tells whether its arguments are returned.
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
        """Skip an inner function, which is read separately."""


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
