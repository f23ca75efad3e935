# SPDX-License-Identifier: GPL-2.0
"""Tests each rule on small trees with one mistake."""

import os
import tempfile

from layers import rules

SPDX_RS = "// SPDX-License-Identifier: GPL-2.0\n"
SPDX_SH = "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\n"

# A tree without mistakes, but with text that looks like mistakes.
GOOD = {
    "Makefile": "# SPDX-License-Identifier: GPL-2.0\n",
    "Documentation/architecture.md": """# Architecture
```
rust/
  bindings/     C
  kern/         the kernel
  x86/          the processor
    intel/      Intel's
  perf/         events
  perf_core/    their core
  logic/        decisions
    model/      tables
    regs/       registers
  driver/       all together
    hw/         registers
selftests/
```
""",
    "README.md": "unsafe, without a licence line\n",
    "build/rpmu.rs": "unsafe: built, hence not ours\n",
    "scripts/run": SPDX_SH,
    "rust/helpers.c": SPDX_RS + "\n" * 198,
    "rust/rpmu.rs": SPDX_RS + "mod bindings;\nmod driver;\nuse crate::Rpmu;\nuse driver::Driver;\n",
    "rust/bindings/mod.rs": SPDX_RS + 'include!(env!("RPMU_BINDINGS"));\n',
    "rust/driver/mod.rs": SPDX_RS
    + """// unsafe, crate::bindings
/* /* unsafe */ unsafe { } */
const A: &str = "unsafe { crate::bindings::x() } \\" unsafe";
const B: &CStr = cr#"unsafe "quoted" { }"#;
const C: char = '"';
fn f<'a>(x: &'a str) -> impl Iterator<Item = u8> + use<'a> { unsafe_looking(x, b'\\'', '{') }
use crate::{driver::event, kern::lock, logic::{self, scheduler::*}, perf::Event as E, x86};
mod inner { use super::event as other; use super::super::logic; }
""",
    "rust/logic/mod.rs": SPDX_RS
    + """//! ```
//! use std::vec;
//! ```
use core::{fmt, ops::Range};
use crate::logic::counter::Counter;
use self::counter::Other;
#[cfg(test)]
use std::vec;
#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
}
""",
    "rust/perf_core/mod.rs": SPDX_RS + "use crate::{bindings, kern, perf::Pmu};\n",
    "rust/logic/regs/counter.rs": SPDX_RS + "pub struct Counter;\n#[cfg(test)]\nmod tests;\n",
    "rust/logic/regs/counter/tests.rs": SPDX_RS + "use super::Counter;\nuse crate::logic::model::Model;\n",
    "rust/logic/regs/mod.rs": SPDX_RS + "pub mod counter;\npub mod period;\n",
    "rust/logic/regs/period.rs": SPDX_RS + "use super::counter::Counter;\npub struct Period(Counter);\n",
    "rust/logic/model/mod.rs": SPDX_RS + "mod table;\npub use table::Model as Model;\npub const EMPTY: u64 = 0;\n",
    "rust/logic/model/table.rs": SPDX_RS
    + "use crate::logic::regs::counter;\npub(in crate::logic::model) struct Model(counter::Counter);\n",
    # b uses an item of a that the parent re-exports: no cycle.
    "rust/kern/mod.rs": SPDX_RS + "mod a;\nmod b;\npub use a::A;\npub use b::B;\npub const C: u64 = 0;\n",
    "rust/kern/a.rs": SPDX_RS + "pub struct A;\n",
    "rust/kern/b.rs": SPDX_RS + "use super::{A as Other, C};\npub struct B(Other);\n",
    "rust/perf/mod.rs": SPDX_RS + "use crate::{bindings, perf::event};\nfn f() {\n    // SAFETY: It is valid.\n    unsafe { g() }\n}\n",
    "rust/x86/msr.rs": SPDX_RS + "use super::percpu;\nmod perf;\nuse self::perf::X;\nuse super::perf;\nuse crate::bindings;\nuse kernel::bindings as k;\n",
    "selftests/host/src/lib.rs": SPDX_RS + '#[path = "../../../rust/logic/mod.rs"]\npub mod logic;\n',
    "selftests/vpmu/src/lib.rs": SPDX_RS + '// unlike rust/logic\n#[path = "events.rs"]\nmod events;\n',
    "selftests/tally/pmu.rs": SPDX_RS + '#[path = "../../rust/bindings/mod.rs"]\nmod bindings;\n#[path = "../../rust/perf/mod.rs"]\nmod perf;\n',
    "selftests/vpmu/Cargo.toml": '# not rust/logic\n[dependencies]\nx = { path = "x" }\n',
    "selftests/vpmu/qemu/vpmu.c": "/*\n * PMU\n *\n * SPDX-License-Identifier: GPL-2.0-or-later\n */\n",
}

DRIVER, KERN, PERF, X86 = (f"rust/{layer}/new.rs" for layer in ("driver", "kern", "perf", "x86"))
LOGIC = "rust/logic/nospec.rs"
ARCHITECTURE = "Documentation/architecture.md"
VPMU = "selftests/vpmu"

# (rule, file, its text, the line on which it is wrong). A licence line is put in front, except for the
# rule about licences, so that the first line of the text is line 2.
BAD = (
    (rules.imports, X86, "use crate::perf::Event;", 2),
    (rules.imports, X86, "use crate::logic;", 2),
    (rules.imports, X86, "use crate::{\n    bindings,\n    driver::Pmu,\n};", 4),
    (rules.imports, X86, "use super::super::perf;", 2),
    (rules.imports, X86, "fn f() { crate::perf::f() }", 2),
    (rules.imports, X86, "mod a { mod b { use super::super::super::super::perf; } }", 2),
    (rules.imports, PERF, "use crate::x86::msr;", 2),
    (rules.imports, PERF, "use crate::perf_core::Context;", 2),
    (rules.imports, PERF, "fn f() { super::super::perf_core::f() }", 2),
    (rules.imports, KERN, "use crate::x86::msr;", 2),
    (rules.imports, LOGIC, "use crate::kern::lock;", 2),
    (rules.imports, PERF, "use crate::logic::model;", 2),
    (rules.imports, PERF, "use crate::THIS_MODULE;", 2),
    (rules.imports, PERF, "macro_rules! m { () => { $crate::x86::f() } }", 2),
    (rules.imports, LOGIC, "use crate::perf::Event;", 2),
    (rules.imports, LOGIC, "use crate::x86::{self};", 2),
    (rules.imports, LOGIC, "#[cfg(test)]\nmod tests {\n    use crate::driver;\n}", 4),
    (rules.imports, LOGIC, "use super::super::driver;", 2),
    (rules.imports, LOGIC, "use crate as me;", 2),
    (rules.imports, X86, "use super::super as me;", 2),
    (rules.imports, LOGIC, '#[path = "../perf/event.rs"]\nmod event;', 2),
    (rules.imports, LOGIC, 'include!("../perf/event.rs");', 2),
    (rules.imports, DRIVER, "use crate::bindings;", 2),
    (rules.imports, DRIVER, "use crate::Rpmu;", 2),
    (rules.imports, "rust/bindings/new.rs", "use crate::perf;", 2),
    (rules.imports, "rust/extra/mod.rs", "", 1),
    (rules.logic_is_in_order, "rust/logic/regs/new.rs", "use crate::logic::model::Model;", 2),
    (rules.logic_is_in_order, "rust/logic/regs/new.rs", "fn f(x: u64) {\n    crate::logic::model::EMPTY\n}", 3),
    (rules.logic_is_in_order, "rust/logic/regs/new.rs", "use super::super::model::{self};", 2),
    (rules.logic_is_in_order, "rust/logic/unlisted.rs", "", 1),
    (rules.no_cycles, "rust/logic/regs/counter.rs", "use super::period::Period;\npub struct Counter;\n#[cfg(test)]\nmod tests;", 2),
    (rules.no_cycles, "rust/kern/a.rs", "pub struct A;\nfn f() {\n    super::B\n}", 4),
    (rules.no_cycles, "rust/kern/a.rs", "use crate::kern::b;\npub struct A;", 2),
    (rules.no_cycles, "rust/kern/mod.rs", "mod a;\nmod b;\npub use b::B;\npub const C: Option<B> = None;", 5),
    (rules.tree_is_documented, ARCHITECTURE, GOOD[ARCHITECTURE].replace("  kern/         the kernel\n", ""), 4),
    (rules.tree_is_documented, ARCHITECTURE, GOOD[ARCHITECTURE].replace("  kern/", "  extra/        other\n  kern/"), 4),
    (rules.tree_is_documented, ARCHITECTURE, GOOD[ARCHITECTURE].replace("    regs/       registers\n", ""), 4),
    (rules.tree_is_documented, ARCHITECTURE, GOOD[ARCHITECTURE].replace("    model/      tables\n", "").replace("  driver/", "    model/      tables\n  driver/"), 12),
    (rules.logic_is_pure, LOGIC, "use kernel::prelude::*;", 2),
    (rules.logic_is_pure, LOGIC, "fn f() -> std::string::String {}", 2),
    (rules.logic_is_pure, LOGIC, "extern crate alloc;", 2),
    (rules.logic_is_pure, LOGIC, "#[cfg(test)]\nmod tests {}\nuse std::vec;", 4),
    (rules.logic_is_pure, LOGIC, "#[cfg(test)]\nuse std::vec;\nuse alloc::vec;", 4),
    (rules.no_bindings, DRIVER, "use kernel::bindings;", 2),
    (rules.no_bindings, DRIVER, "fn f() { kernel::bindings::f() }", 2),
    (rules.no_bindings, "rust/rpmu.rs", "fn f() { bindings::f() }", 2),
    (rules.no_unsafe, DRIVER, "fn f() {\n    unsafe { g() }\n}", 3),
    (rules.no_unsafe, DRIVER, 'const C: char = \'"\';\nunsafe impl Send for X {} // "', 3),
    (rules.no_unsafe, DRIVER, "/* /* unsafe */ unsafe */\nunsafe fn f() {}", 3),
    (rules.no_unsafe, LOGIC, "unsafe fn f() {}", 2),
    (rules.no_unsafe, "rust/rpmu.rs", "unsafe impl Send for Rpmu {}", 2),
    (rules.tally_is_on_perf, "selftests/tally/new.rs", '#[path = "../../rust/perf_core/mod.rs"]\nmod perf_core;', 2),
    (rules.tally_is_on_perf, "selftests/tally/new.rs", "use bindings::perf_event;", 2),
    (rules.vpmu_is_independent, f"{VPMU}/src/new.rs", '#[path = "../../../rust/logic/mod.rs"]\nmod logic;', 2),
    (rules.vpmu_is_independent, f"{VPMU}/src/new.rs", 'const T: &str = include_str!("../../../rust/x86/msr.rs");', 2),
    (rules.vpmu_is_independent, f"{VPMU}/src/new.rs", '#[path = "../../host/src/lib.rs"]\nmod host;', 2),
    (rules.vpmu_is_independent, f"{VPMU}/new.toml", '[dependencies]\nlogic = { path = "../host" }', 3),
    (rules.vpmu_is_independent, f"{VPMU}/new.toml", '[dependencies]\nrpmu-logic = "0"\nx = { package = "rpmu-logic" }', 4),
    (rules.vpmu_is_independent, f"{VPMU}/build.sh", "cp ../../rust/logic/model/*.rs src/", 2),
    (rules.helpers_are_short, "rust/helpers.c", "\n" * 198, 200),
    (rules.licence, "rust/driver/bare.rs", None, 1),
    (rules.licence, "scripts/bare", "#!/bin/sh\necho", 2),
    (rules.licence, "selftests/bare.c", None, 1),
    (rules.licence, "Kbuild", None, 1),
)


def run():
    """Returns 0 if all results are as expected, otherwise 1, and prints the differences."""
    findings = _check(GOOD)
    if findings:
        print(f"check-layers: found something in the good tree: {findings}")
        return 1

    wrong = []
    for rule, path, text, line in BAD:
        bare = rule is rules.licence
        found = _check({**GOOD, path: (text or "x\n") if bare else SPDX_RS + text + "\n"})
        if [(f[0], f[1], name) for name, f in found] != [(path, line, rule.__name__)]:
            wrong.append(f"{rule.__name__} on {path}, {str(text)[:80]!r}: expected line {line}, found {found}")

    link = {"rust/logic/mod.rs": f"{VPMU}/src/logic.rs"}
    if [name for name, _ in _check(GOOD, link)] != ["vpmu_is_independent"]:
        wrong.append("vpmu_is_independent does not see a symbolic link")

    for rule in rules.ALL:
        if not any(case[0] is rule for case in BAD):
            wrong.append(f"no test of {rule.__name__}")

    for line in wrong:
        print(f"check-layers: {line}")
    if not wrong:
        print(f"check-layers: {len(BAD) + 2} trees, all as expected")
    return 1 if wrong else 0


def _check(files, links=None):
    """Returns (name of the rule, finding) for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for path, text in files.items():
            os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
            with open(f"{top}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        for target, path in (links or {}).items():
            os.symlink(f"{top}/{target}", f"{top}/{path}")
        tree = rules.Tree(top)
        return [(rule.__name__, finding) for rule in rules.ALL for finding in sorted(set(rule(tree)))]
