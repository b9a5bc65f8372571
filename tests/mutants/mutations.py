"""Small wrong changes of a module, of which each should fail a test.

A mutant is one change of the syntax tree: another comparison or operator, a condition without one
of its parts or turned round, another constant, a statement that is left out, no result.

Left as they are: annotations, docstrings, texts of exceptions and of logs, other texts of several
words, parts of f-strings, assertions, ``strict`` of zip, and what is for type checkers only.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_PAIRS: Final = (
    ("min", "max"),
    ("any", "all"),
    ("startswith", "endswith"),
    ("find", "rfind"),
    ("partition", "rpartition"),
    ("lstrip", "rstrip"),
    ("removeprefix", "removesuffix"),
    ("bisect_left", "bisect_right"),
)
_CALLED: Final = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])}
_ORDERED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ENCODINGS: Final = frozenset({"utf-8", "utf-16-be", "latin-1", "ascii", "big"})
_NOT_VISITED: Final = frozenset(
    {"annotation", "returns", "decorator_list", "type_params", "type_comment"}
)
_LOGGED: Final = frozenset({"debug", "info", "warning", "error", "exception"})
_SPACES_OF_A_SENTENCE: Final = 2
_MOST_SHOWN: Final = 70


class Mutant(NamedTuple):
    """One change: where it is, the text before and after it, and how to make it in the tree."""

    place: str
    """Dotted name of the function or class; empty for the module itself."""
    before: str
    after: str
    nth: int
    """Which one of equal changes in its place, from 1."""
    function: tuple[str, int] | None
    """Qualified name and first line of the outermost function whose code it changes; None if it
    takes effect when the module is imported."""
    make: Callable[[], None]
    undo: Callable[[], None]

    @property
    def name(self) -> str:
        """What identifies it as long as its function does not change."""
        nth = f" [{self.nth}]" if self.nth > 1 else ""
        return f"{self.place or 'module'}: {self.before} -> {self.after}{nth}"


def mutants_of(tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for change in _Walk().visit_body(tree):
        before = _text(change.owner)
        change.make()
        after = _text(change.owner) if change.removed is None else change.removed
        change.undo()
        if before != after:
            key = (change.place, *_cut(before, after))
            seen[key] += 1
            found.append(Mutant(*key, seen[key], change.function, change.make, change.undo))
    return found


def sample(mutants: list[Mutant], size: int) -> list[int]:
    """The places in the list of so many mutants, the same ones as long as their names stay."""
    order = sorted(
        range(len(mutants)), key=lambda at: hashlib.sha256(mutants[at].name.encode()).digest()
    )
    return sorted(order[:size])


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _cut(before: str, after: str) -> tuple[str, str]:
    """Long texts around the place where they differ."""
    pairs = enumerate(zip(before, after, strict=False))
    differs = next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))
    is_long = max(len(before), len(after)) > _MOST_SHOWN
    start = max(0, differs - _MOST_SHOWN // 2) if is_long else 0
    return _part(before, start), _part(after, start)


def _part(text: str, start: int) -> str:
    end = start + _MOST_SHOWN
    return f"{'...' * (start > 0)}{text[start:end]}{'...' * (end < len(text))}"


class _Change(NamedTuple):
    place: str
    function: tuple[str, int] | None
    owner: ast.AST
    """What is shown before and after the change."""
    make: Callable[[], None]
    undo: Callable[[], None]
    removed: str | None = None


class _Slot(NamedTuple):
    """Where a node hangs in its parent."""

    holder: Any
    key: Any

    def put(self, node: Any) -> None:
        if isinstance(self.holder, list):
            self.holder[self.key] = node
        else:
            setattr(self.holder, self.key, node)


class _Walk:
    """Walks a tree and gives the changes of each node."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._function: tuple[str, int] | None = None

    def visit_body(self, node: ast.AST) -> Iterator[_Change]:
        for field, value in ast.iter_fields(node):
            if field in _NOT_VISITED:
                continue
            children = value if isinstance(value, list) else [value]
            for number, child in enumerate(children):
                if isinstance(child, ast.AST):
                    slot = _Slot(value, number) if isinstance(value, list) else _Slot(node, field)
                    yield from self._visit(child, slot, node)

    def _visit(self, node: ast.AST, slot: _Slot, parent: ast.AST) -> Iterator[_Change]:
        if _is_left_alone(node):
            return
        yield from self._changes(node, slot, parent)
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self._visit_named(node)
        else:
            yield from self.visit_body(node)

    def _visit_named(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[_Change]:
        self._names.append(node.name)
        if isinstance(node, ast.FunctionDef):
            yield from self.visit_body(node.args)  # the defaults: not code of the function
            outermost = self._function is None
            if outermost:
                first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
                self._function = ".".join(self._names), first
            for number, child in enumerate(node.body):
                yield from self._visit(child, _Slot(node.body, number), node)
            if outermost:
                self._function = None
        else:
            for number, child in enumerate(node.body):
                yield from self._visit(child, _Slot(node.body, number), node)
        self._names.pop()

    def _change(
        self,
        owner: ast.AST,
        slot: _Slot,
        old: Any,
        new: Any,
        removed: str | None = None,
    ) -> _Change:
        return _Change(
            ".".join(self._names),
            self._function,
            owner,
            lambda: slot.put(new),
            lambda: slot.put(old),
            removed,
        )

    def _changes(self, node: ast.AST, slot: _Slot, parent: ast.AST) -> Iterator[_Change]:
        """The changes of this node itself. What replaces it is shown in its parent."""

        def replaced(new: ast.AST) -> _Change:
            around = ast.expr | ast.Return | ast.keyword | ast.Assign | ast.AnnAssign
            if isinstance(parent, around):
                return self._change(parent, slot, node, new)
            return self._change(node, slot, node, new, _text(new))

        match node:
            case ast.Compare():
                for number, operator in enumerate(node.ops):
                    for other in _COMPARED[type(operator)]:
                        yield self._change(node, _Slot(node.ops, number), operator, other())
            case ast.BoolOp():
                for part in node.values:
                    rest = [value for value in node.values if value is not part]
                    new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
                    yield self._change(node, slot, node, new, _text(new))
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
                yield self._change(node, slot, node, node.operand, _text(node.operand))
            case ast.BinOp() | ast.AugAssign():
                computed = _COMPUTED.get(type(node.op))
                if computed is not None and not _computes_text(node):
                    yield self._change(node, _Slot(node, "op"), node.op, computed())
            case ast.If() | ast.While() | ast.IfExp():
                if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
                    yield self._turned(_Slot(node, "test"), node.test)
            case ast.comprehension():
                for number, test in enumerate(node.ifs):
                    if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
                        yield self._turned(_Slot(node.ifs, number), test)
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._change(node, _Slot(node, "value"), value, ast.Constant(None))
            case ast.Expr(value=ast.Call()):
                yield self._change(node, slot, node, ast.Pass(), "nothing")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._change(node, slot, node, ast.Pass(), "nothing")
            case ast.Raise() | ast.Delete():
                yield self._change(node, slot, node, ast.Pass(), "nothing")
            case ast.Continue():
                yield self._change(node, slot, node, ast.Break(), "break")
            case ast.Break():
                yield self._change(node, slot, node, ast.Continue(), "continue")
            case ast.Call(func=ast.Name(id=called)) if called in _CALLED:
                yield self._change(node, _Slot(node.func, "id"), called, _CALLED[called])
            case ast.Call(func=ast.Attribute(attr=called)) if called in _CALLED:
                yield self._change(node, _Slot(node.func, "attr"), called, _CALLED[called])
            case ast.Slice():
                for end in ("lower", "upper", "step"):
                    bound = getattr(node, end)
                    if bound is not None:
                        yield self._change(parent, _Slot(node, end), bound, None)
            case ast.Constant():
                other_value = _other(node.value)
                # With < and such, another bound is the same as another operator.
                is_bound = isinstance(parent, ast.Compare) and isinstance(parent.ops[0], _ORDERED)
                if other_value is not None and not is_bound:
                    yield replaced(ast.Constant(other_value))
            case _:
                pass

    def _turned(self, slot: _Slot, test: ast.expr) -> _Change:
        new = ast.UnaryOp(ast.Not(), test)
        return self._change(test, slot, test, new, _text(new))


def _other(value: object) -> bool | float | str | bytes | None:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            is_for_people = value.count(" ") >= _SPACES_OF_A_SENTENCE
            return None if is_for_people or value in _ENCODINGS else f"XX{value}"
        case bytes():
            return b"XX" + value
        case _:
            return None


def _computes_text(node: ast.BinOp | ast.AugAssign) -> bool:
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(map(_is_text, parts))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):  # a docstring
            return True
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")) | ast.keyword(arg="strict"):
            return True
        case ast.Call(func=ast.Attribute(attr="getLogger")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _LOGGED
        case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "NewType")):
            return True
        case _:
            return False
