# SPDX-License-Identifier: GPL-2.0
"""Finds the uses between the files of a crate, by the items that they name.

`pub use` re-exports an item. In the layers `looked_through`, code that names the item uses the file that defines it. In other
layers, it uses the file that re-exports it, and uses of a parent by its submodules do not count.
"""

from collections import defaultdict
from typing import NamedTuple

from layers import rust

# No chain of re-exports is longer.
MOST_STEPS = 8


class Use(NamedTuple):
    """A use of an item of another file."""

    line: int
    name: str


class Crate:
    """The files of a crate below rust/, by module."""

    def __init__(self, sources, looked_through):
        """Takes (path, module, Source) of each file, and the names of the layers `looked_through`."""
        self.looked_through = looked_through
        self.sources = {module: source for _, module, source in sources}
        self.path_of = {module: path for path, module, _ in sources}
        self.tests = {module + (name,) for module, source in self.sources.items() for name in rust.test_modules(source)}
        self.paths = {m: [p for p in rust.paths(source) if not p.is_test] for m, source in self.sources.items()}
        self.definitions = {module: rust.definitions(source) for module, source in self.sources.items()}
        self.reexported = {m: {p.name for p in paths if p.is_public} for m, paths in self.paths.items()}
        self.imported = {}
        for module, paths in self.paths.items():
            self.imported[module] = {p.name: p.segments for p in reversed(paths) if p.name and not p.module}

    def uses(self):
        """Returns the uses outside of tests: for each module, the first use of each other module."""
        found = defaultdict(dict)
        for module, source in self.sources.items():
            if self._is_for_tests(module):
                continue
            lines_of_use = {path.line for path in self.paths[module] if path.name}
            named = [(path.segments, path.line, path) for path in self.paths[module] if not path.is_public]
            # Items that the module both re-exports and uses.
            for token in source.tokens:
                if token.kind == "ident" and token.text in self.reexported[module] and token.line not in lines_of_use:
                    named.append(((token.text,), token.line, None))
            for segments, line, path in named:
                absolute = path.in_crate(module) if path is not None else None
                target = self._resolve(module, segments) if absolute is None else self._from((), absolute, 0)
                if target is None or target == module or self._is_for_tests(target):
                    continue
                if not self._is_part(module, target):
                    found[module].setdefault(target, Use(line, segments[-1]))
        return found

    def cycles(self):
        """Returns the sets of modules in which each module uses all others, directly or indirectly, and all uses."""
        uses = self.uses()
        return [cycle for cycle in _components(uses) if len(cycle) > 1], uses

    def _is_part(self, module, whole):
        return bool(module) and module[0] not in self.looked_through and module[: len(whole)] == whole

    def _is_for_tests(self, module):
        return any(module[: len(test)] == test for test in self.tests)

    def _resolve(self, module, segments, steps=0):
        """Returns the module that defines the item that `segments` name in `module`; None if it is in no file here."""
        if steps > MOST_STEPS or not segments:
            return None
        first, rest = segments[0], segments[1:]
        if first == "crate":
            return self._from((), rest, steps)
        if first in ("self", "super"):
            base = list(module)
            rest = list(segments)
            while rest and rest[0] in ("self", "super"):
                if rest.pop(0) == "super" and base:
                    base.pop()
            return self._from(tuple(base), tuple(rest), steps)
        if module + (first,) in self.sources:
            return self._from(module, segments, steps)
        if first in self.definitions[module]:
            return module
        imported = self.imported[module].get(first)
        if imported is None or imported == segments:
            return None
        return self._resolve(module, imported + rest, steps + 1)

    def _from(self, module, segments, steps):
        """Returns the same as _resolve() for `segments` that start at `module`, not at an item visible in it."""
        while segments and module + (segments[0],) in self.sources:
            module, segments = module + (segments[0],), segments[1:]
        if module not in self.sources:
            return None
        if not segments or segments[0] in self.definitions[module]:
            return module
        imported = self.imported[module].get(segments[0])
        hides = bool(module) and module[0] not in self.looked_through and segments[0] in self.reexported[module]
        if imported is not None and not hides:
            found = self._resolve(module, imported + tuple(segments[1:]), steps + 1)
            if found is not None:
                return found
        # A macro of the module may define the item; at the crate's root, the name is a layer that is not in `sources`.
        return module or None


def shortest_cycle(uses, cycle):
    """Returns a shortest cycle among the modules of the set: each uses the next, and the last the first."""
    best = None
    for start in sorted(cycle):
        before = {start: None}
        queue = [start]
        for module in queue:
            if start in uses[module]:
                path = [module]
                while before[path[0]] is not None:
                    path.insert(0, before[path[0]])
                if best is None or len(path) < len(best):
                    best = path
                break
            for target in sorted(uses[module]):
                if target in cycle and target not in before:
                    before[target] = module
                    queue.append(target)
    return best


def _components(graph):
    """Returns the strongly connected components of a graph (Tarjan's algorithm)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in number:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], number[target])
        if lowest[node] == number[node]:
            component = set()
            while node not in component:
                component.add(stack.pop())
            found.append(component)

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found
