# SPDX-License-Identifier: GPL-2.0
"""The rules. Each is a function from a tree to its findings.

A finding is (file, line, text); the text says what is wrong and what to do.
"""

import os
import re
from pathlib import PurePosixPath

from layers import files, rust

# The layers that each layer may import, besides itself. The crate's root ties everything together.
MAY_IMPORT = {
    "root": {"driver", "kern", "logic", "perf", "perf_core", "x86"},
    "driver": {"kern", "logic", "perf", "perf_core", "x86"},
    "perf_core": {"bindings", "kern", "perf"},
    "perf": {"bindings", "kern"},
    "x86": {"bindings", "kern"},
    "kern": {"bindings"},
    "logic": set(),
    "bindings": set(),
}
# The modules of logic, lowest first: each may import from those before it.
LOGIC_MODULES = (
    "nospec",
    "tried",
    "user_read",
    "cores",
    "regs",
    "breaker",
    "pmi",
    "capabilities",
    "model",
    "refusal",
    "sample",
    "pmu",
    "open",
    "sched",
    "smt",
    "rotation",
)
# The layers in which `pub use` does not hide a cycle (layers/files.py).
LOOKED_THROUGH = ("logic", "bindings", "kern", "x86")
# Layers without unsafe code and without C.
SAFE = ("root", "driver", "logic")
# Crates that logic must not use, so that it compiles and runs anywhere.
NOT_CORE = {"alloc", "bindings", "ffi", "kernel", "macros", "pin_init", "std", "uapi", "zerocopy"}
HELPERS_LIMIT = 200
# The second PMU, on rust/perf alone.
TALLY = "selftests/tally"

# Directories of build products and of git, which are not checked.
NOT_SOURCE = {".git", "__pycache__", "build", "target"}


class Tree:
    """The files of a checkout, read once."""

    def __init__(self, top):
        self.top = top
        self.files = {}  # path from the top -> text
        self.links = {}  # path from the top -> where the symbolic link points to
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(set(folders) - NOT_SOURCE)
            for name in sorted(names) + [n for n in folders if os.path.islink(f"{folder}/{n}")]:
                full = os.path.join(folder, name)
                path = os.path.relpath(full, top)
                if os.path.islink(full):
                    self.links[path] = os.path.realpath(full)
                    continue
                with open(full, "rb") as file:
                    self.files[path] = file.read().decode("utf-8", "replace")
        self._rust = {}

    def rust(self, *folders):
        """Yields (path, Source) of the Rust files below the folders."""
        for path, text in self.files.items():
            if path.endswith(".rs") and path.startswith(tuple(f"{folder}/" for folder in folders)):
                if path not in self._rust:
                    self._rust[path] = rust.Source(text)
                yield path, self._rust[path]


def layer_of(path):
    """Returns the layer of a file below rust/, and its module path in the crate."""
    parts = PurePosixPath(path).with_suffix("").parts[1:]
    if len(parts) == 1:
        return "root", ()
    return parts[0], parts[:-1] if parts[-1] == "mod" else parts


def imports(tree):
    """Imports run downwards only."""
    for path, source in tree.rust("rust"):
        layer, module = layer_of(path)
        if layer not in MAY_IMPORT:
            yield path, 1, f"rust/{layer} is no layer; put it into one of {_list(MAY_IMPORT)}"
            continue
        for used in rust.paths(source):
            target = used.in_crate(module)
            if target == () and layer != "root":
                yield path, used.line, "takes the crate itself, under a name that hides the layers; name what is needed"
                continue
            if not target or target[0] == layer or layer == "root" and len(target) == 1:
                continue
            if target[0] not in MAY_IMPORT or target[0] == "root":
                text = f"{layer} uses crate::{target[0]}, which is above it; pass it down as an argument"
            elif target[0] in MAY_IMPORT[layer]:
                continue
            elif target[0] == "bindings":
                text = f"{layer} uses bindings; add a safe function to rust/kern, rust/perf or rust/x86 and call that"
            else:
                allowed = _list(MAY_IMPORT[layer]) or "nothing of this crate"
                text = f"{layer} imports {target[0]}, but may import {allowed}; let rust/driver tie the two together"
            yield path, used.line, text
        if layer != "bindings":
            for line in rust.files_taken_in(source):
                yield path, line, "takes in a file by its path, past the layers; make it a module of this layer"


def logic_is_in_order(tree):
    """The modules of logic import from modules below them only; their tests may import from all."""
    crate = _crate(tree)
    for module, path in crate.path_of.items():
        if module[:1] == ("logic",) and len(module) == 2 and module[1] not in LOGIC_MODULES:
            yield path, 1, f"logic::{module[1]} has no place in the order of modules; give it one in LOGIC_MODULES"
    for module, uses in crate.uses().items():
        if module[:1] != ("logic",) or len(module) < 2 or module[1] not in LOGIC_MODULES:
            continue
        for target, use in uses.items():
            above = target[1] if len(target) > 1 else "mod"
            if target[:1] != ("logic",) or above in LOGIC_MODULES and LOGIC_MODULES.index(above) <= LOGIC_MODULES.index(module[1]):
                continue
            text = f"{module[1]} uses {use.name} of logic::{above}, which is above it; move what both need to the lower one"
            yield crate.path_of[module], use.line, text


def no_cycles(tree):
    """Files do not use each other in a cycle."""
    crate = _crate(tree)
    cycles, uses = crate.cycles()
    for cycle in cycles:
        path = files.shortest_cycle(uses, cycle)
        first = uses[path[0]][(path + path)[1]]
        steps = "".join(f", which uses {uses[m][t].name} of {crate.path_of[t]}" for m, t in zip(path[1:], path[2:] + path[:1]))
        text = f"uses {first.name} of {crate.path_of[path[1]]}{steps}: a cycle; move what they share below them"
        yield crate.path_of[path[0]], first.line, text


def tree_is_documented(tree):
    """The tree of rust/ in the documentation lists all layers, and the modules of logic from the top down."""
    path = "Documentation/architecture.md"
    if path not in tree.files:
        return
    lines = tree.files[path].split("\n")
    begin = lines.index("rust/") if "rust/" in lines else len(lines)
    listed, layer = {}, None  # layer -> its modules, in their order
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if not line.startswith("  "):
            break
        name = re.match(r"(  |    )([a-z0-9_]+)/", line)
        if name and name[1] == "  ":
            layer = name[2]
            listed[layer] = []
        elif name:
            listed[layer].append((name[2], number))
    for layer in sorted(set(MAY_IMPORT) - {"root"} ^ set(listed)):
        text = "is listed but is no layer" if layer in listed else "is a layer but is not listed"
        yield path, begin + 1, f"rust/{layer} {text}"
    modules = [name for name, _ in listed.get("logic", [])]
    expected = [module for module in reversed(LOGIC_MODULES) if module in modules]
    folders = {parts[2] for parts in (PurePosixPath(name).parts for name in tree.files) if parts[:2] == ("rust", "logic") and len(parts) > 3}
    for module in sorted(folders & set(LOGIC_MODULES) - set(modules)):
        yield path, begin + 1, f"logic::{module} is not listed"
    for (module, number), right in zip(listed.get("logic", []), expected + [None] * len(modules)):
        if module != right:
            yield path, number, f"logic::{module} is not in its place; list the modules from the top down"
            break


def _crate(tree):
    return files.Crate([(path, layer_of(path)[1], source) for path, source in tree.rust("rust")], LOOKED_THROUGH)


def logic_is_pure(tree):
    """logic uses core only; its tests may use std."""
    for path, source in tree.rust("rust/logic"):
        for used in rust.paths(source):
            if used.segments[0] in NOT_CORE and not used.is_test:
                text = f"logic uses {used.segments[0]}; use core, or do it in rust/driver"
                yield path, used.line, text


def no_bindings(tree):
    """bindings:: is used in kern, perf, perf_core and x86 only, whether rpmu's or the kernel's."""
    for path, source in tree.rust("rust"):
        if layer_of(path)[0] not in SAFE:
            continue
        for used in rust.paths(source):
            if "bindings" in used.segments and used.segments[0] != "crate":
                text = f"{'::'.join(used.segments)}: C is not called here; add a safe function to rust/kern, rust/perf or rust/x86"
                yield path, used.line, text


def no_unsafe(tree):
    """`unsafe` is in kern, perf, perf_core, x86 and bindings only.

    forbid(unsafe_code) cannot replace this rule in driver, where a macro of perf_core writes `unsafe`.
    """
    places = "rust/kern, rust/perf, rust/perf_core, rust/x86 and rust/bindings"
    for path, source in tree.rust("rust"):
        for token in source.tokens:
            if layer_of(path)[0] in SAFE and token.kind == "ident" and token.text == "unsafe":
                yield path, token.line, f"unsafe outside of {places}; move it there behind a safe function"


def tally_is_on_perf(tree):
    """The second PMU uses perf and the layers below it only, and no bindings::."""
    for path, source in tree.rust(TALLY):
        for token in source.tokens:
            taken = re.match(r'"(?:\.\./)+rust/(\w+)', token.text) if token.kind == "string" else None
            if taken and taken[1] not in MAY_IMPORT["perf"] | {"perf"}:
                yield path, token.line, f"takes in {taken[1]}: perf stands alone; do without it"
        for used in rust.paths(source):
            if "bindings" in used.segments:
                yield path, used.line, "bindings in a driver on perf; add a safe function to rust/perf"


def vpmu_is_independent(tree):
    """The emulated PMU shares nothing with the driver's logic, because a wrong table in both would pass the tests."""
    here = "selftests/vpmu"
    advice = "the hardware model must not know what the driver believes; take it from the vendors' event lists"
    for path, target in tree.links.items():
        if path.startswith(here + "/") and not _is_below(target, os.path.join(os.path.realpath(tree.top), here)):
            yield path, 1, f"symbolic link out of {here}; {advice}"
    for path, text in tree.files.items():
        if not path.startswith(here + "/"):
            continue
        if path.endswith(".rs"):
            strings = [(t.line, t.text.strip('"')) for t in rust.Source(text).tokens if t.kind == "string"]
        elif path.endswith(".toml"):
            strings = [(n, s) for n, line in enumerate(text.split("\n"), 1) for s in re.findall(r'"([^"]*)"', line.split("#")[0])]
        else:
            strings = [(n, line) for n, line in enumerate(text.split("\n"), 1) if not re.match(r"\s*(#|//|\*)", line)]
        for line, string in strings:
            resolved = os.path.normpath(os.path.join(os.path.dirname(path), string))
            if re.search(r"rust/logic|rpmu-logic", string) or _is_below(resolved, "rust") or _is_below(resolved, "selftests/host"):
                yield path, line, f"uses {string.strip()}; {advice}"


def helpers_are_short(tree):
    """rust/helpers.c stays a list of one-call wrappers."""
    lines = tree.files.get("rust/helpers.c", "").count("\n")
    if lines >= HELPERS_LIMIT:
        yield "rust/helpers.c", lines, f"{lines} lines, the limit is {HELPERS_LIMIT - 1}; remove unused helpers, or write it in Rust"


def licence(tree):
    """Every source file states its licence."""
    for path, text in tree.files.items():
        lines = text.split("\n")
        is_script = lines[0].startswith("#!")
        if not is_script and not _is_source(path):
            continue
        # Files for QEMU's tree have the line in their first comment, as QEMU requires.
        within = 12 if path.startswith("selftests/vpmu/qemu/") else 1 + is_script
        if not any("SPDX-License-Identifier: GPL-2.0" in line for line in lines[:within]):
            line = 1 + is_script
            yield path, line, f"no SPDX-License-Identifier: GPL-2.0 in line {line}; add it as a comment"


def _is_source(path):
    name = PurePosixPath(path)
    return name.suffix in (".rs", ".c", ".h", ".S", ".sh", ".py", ".mk") or name.name in ("Kbuild", "Makefile")


def _is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def _list(names):
    return ", ".join(sorted(names))


ALL = (
    imports,
    logic_is_in_order,
    no_cycles,
    tree_is_documented,
    logic_is_pure,
    no_bindings,
    no_unsafe,
    tally_is_on_perf,
    vpmu_is_independent,
    helpers_are_short,
    licence,
)


def check(top):
    """Returns the findings below `top`, sorted and without duplicates, and the number of files."""
    tree = Tree(top)
    findings = {finding for rule in ALL for finding in rule(tree)}
    return sorted(findings), len(tree.files)
