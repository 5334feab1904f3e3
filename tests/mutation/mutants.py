"""Small faults in the functions of a module, one at a time.

Only what stands in functions is changed, for that is what can be swapped in a process that has imported
everything: constants of a module, defaults of arguments and declarations of classes stay as they are. So do
texts, which are mostly the words of errors, and annotations.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEXTS = (ast.JoinedStr,)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: the number of the node in its function, which variant of it, and how to say it."""

    function: str
    line: int
    node: int
    variant: int
    change: str

    def name_in(self, module: str) -> str:
        return f"{module}:{self.function}:{self.node}:{self.variant}"

    @property
    def order(self) -> str:
        """Shuffle the same way every time, so that whoever stops early has looked everywhere."""
        return hashlib.sha256(f"{self.function}:{self.node}:{self.variant}".encode()).hexdigest()


def mutants_of(source: str) -> list[Mutant]:
    """List every fault that can be put into the functions of a module."""
    found = []
    for name, function in _functions(ast.parse(source), ""):
        for number, node in enumerate(_changeable(function)):
            found += [
                Mutant(name, getattr(node, "lineno", 0), number, variant, _said(node, changed))
                for variant, changed in enumerate(_variants(node))
            ]
    return found


def functions_of(source: str) -> list[str]:
    """Name the functions and methods of a module."""
    return [name for name, _ in _functions(ast.parse(source), "")]


def mutated_code(source: str, filename: str, mutant: Mutant) -> CodeType:
    """Compile the function of a module with one fault in it."""
    tree = ast.parse(source, filename)
    function = dict(_functions(tree, ""))[mutant.function]
    node = list(_changeable(function))[mutant.node]
    changed = list(_variants(node))[mutant.variant]
    _Swap(node, ast.copy_location(changed, node)).visit(function)
    module = compile(ast.fix_missing_locations(tree), filename, "exec")
    return next(code for code in _codes(module) if code.co_qualname == mutant.function)


def put_into(module: ModuleType, source: str, mutant: Mutant) -> None:
    """Give a function of an imported module the code with the fault; whoever imported it runs that too."""
    function = _find_function(module, mutant.function)
    function.__code__ = mutated_code(source, function.__code__.co_filename, mutant)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Find functions and methods by their qualified names; what they hold inside belongs to them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            if not _is_shape(child):
                yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _is_shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell a function that only stands for its type."""
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in function.decorator_list)


def _changeable(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Walk what runs: the body, without its docstring, annotations and the words of errors."""
    for statement in function.body:
        yield from _walk(statement)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "args", "decorator_list") and not isinstance(node, ast.Call):
            continue
        if isinstance(node, ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _TEXTS):
                yield from _walk(child)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [op, *ops], comparators) if type(op) in _COMPARED:
            yield ast.Compare(left, [_COMPARED[type(op)](), *ops], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in _CALCULATED and not _is_text(left, right):
            yield ast.BinOp(left, _CALCULATED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in _CALCULATED:
            yield ast.AugAssign(target, _CALCULATED[type(op)](), value)
            yield ast.Pass()
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        # A constant that is answered is changed as a constant; nothing in place of False would be as false.
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.If() | ast.While() | ast.IfExp():
            yield _with_test(node, ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension(target, source, [_, *others], is_async):
            yield ast.comprehension(target, source, others, is_async)
        case ast.Expr(value) if not isinstance(value, ast.Constant):
            yield ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Raise() | ast.Break() | ast.Delete():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()


def _with_test(node: ast.If | ast.While | ast.IfExp, test: ast.expr) -> ast.AST:
    if isinstance(node, ast.IfExp):
        return ast.IfExp(test, node.body, node.orelse)
    return type(node)(test, node.body, node.orelse)


def _is_text(*operands: ast.expr) -> bool:
    return any(
        isinstance(one, _TEXTS) or (isinstance(one, ast.Constant) and isinstance(one.value, str | bytes))
        for one in operands
    )


def _said(before: ast.AST, after: ast.AST) -> str:
    """Tell a change in one line."""
    if isinstance(before, ast.If | ast.While):
        return f"if {ast.unparse(before.test)} -> if not (...)"
    first, second = (" ".join(ast.unparse(ast.fix_missing_locations(one)).split()) for one in (before, after))
    return f"{first} -> {second}"


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Find the code of functions and methods, not of what they hold inside."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            if "<locals>" not in constant.co_qualname and not constant.co_flags & 0x2:
                yield from _codes(constant)


def _find_function(module: ModuleType, qualified: str) -> FunctionType:
    found: Any = module
    for name in qualified.split("."):
        found = found.__dict__[name]
    return _unwrapped(found)


def _unwrapped(found: Any) -> FunctionType:
    """Get at the function inside of whatever decorates it."""
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, cached_property):
            found = found.func
        elif isinstance(found, staticmethod | classmethod):
            found = found.__func__
        else:
            found = found.__wrapped__
    return found
