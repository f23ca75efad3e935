// SPDX-License-Identifier: GPL-2.0

//! Tests layouts in BTF: made by hand, by the C compiler and pahole, and the kernel's own. Damaged
//! BTF must be an error or give another layout; no data may make the parser panic or run for long.

use std::io::Write;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::{
    Command,
    Stdio, //
};

use proptest::prelude::*;
use rpmu_logic::btf::{
    Btf,
    Place,
    Unknown, //
};

/// Reads BTF.
fn read<'a, const N: usize>(data: &'a [u8], wanted: [&'a str; N]) -> Result<Btf<'a, N>, Unknown> {
    let mut btf = Btf::unread(wanted);
    btf.read(data)?;
    Ok(btf)
}

/// BTF under construction. Types are numbered from 1.
#[derive(Default)]
struct Maker {
    types: Vec<u32>,
    strings: Vec<u8>,
    last: u32,
}

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const HAS_WIDTHS: u32 = 1 << 31;

impl Maker {
    fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    /// Adds a type and returns its number.
    fn add(&mut self, kind: u32, name: &str, elements: u32, word: u32, more: &[u32]) -> u32 {
        let name = self.string(name);
        let flag = kind & HAS_WIDTHS;
        self.types
            .extend([name, flag | ((kind & 0x7f) << 24) | elements, word]);
        self.types.extend(more);
        self.last += 1;
        self.last
    }

    fn int(&mut self, bytes: u32) -> u32 {
        self.add(INT, "int", 0, bytes, &[bytes * 8])
    }

    fn array(&mut self, of: u32, elements: u32) -> u32 {
        self.add(ARRAY, "", 0, 0, &[of, of, elements])
    }

    /// Adds a structure or union with members of a name, a type and an offset in bits.
    fn structure(&mut self, kind: u32, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let more: Vec<u32> = members
            .iter()
            .flat_map(|&(name, of, bits)| [self.string(name), of, bits])
            .collect();
        self.add(kind, name, members.len() as u32, size, &more)
    }

    fn done(&self) -> Vec<u8> {
        let types = self.types.len() as u32 * 4;
        let words = [24, 0, types, types, self.strings.len() as u32];
        let mut data = vec![0x9f, 0xeb, 1, 0];
        for word in words.iter().chain(&self.types) {
            data.extend(word.to_le_bytes());
        }
        data.extend(&self.strings);
        data
    }
}

fn place(offset: u32, size: u32) -> Result<Place, Unknown> {
    Ok(Place { offset, size })
}

#[test]
fn members_are_found() {
    let mut maker = Maker::new();
    let int = maker.int(4);
    let long = maker.int(8);
    let pointer = maker.add(POINTER, "", 0, 0, &[]);
    let constant = maker.add(CONST, "", 0, long, &[]);
    let alias = maker.add(TYPEDEF, "u64", 0, constant, &[]);
    let row = maker.array(alias, 3);
    let table = maker.array(row, 5);
    let inner = maker.structure(STRUCT, "", 16, &[("idx", int, 0), ("flags", int, 32)]);
    let either = maker.structure(UNION, "", 16, &[("", inner, 0), ("raw", long, 0)]);
    let hw = maker.structure(
        STRUCT,
        "hw_perf_event",
        24,
        &[("first", long, 0), ("", either, 64)],
    );
    let hw = maker.add(TYPEDEF, "hw_t", 0, hw, &[]);
    maker.add(FWD, "perf_event", 0, 0, &[]);
    maker.structure(
        STRUCT,
        "perf_event",
        200,
        &[
            ("owner", pointer, 0),
            ("hw", hw, 64),
            ("", either, 320),
            ("table", table, 640),
        ],
    );
    let data = maker.done();
    let btf = read(&data, ["perf_event", "hw_perf_event", "perf"]).unwrap();
    for (path, expected) in [
        ("owner", place(0, 8)),
        ("hw", place(8, 24)),
        ("hw.first", place(8, 8)),
        ("hw.idx", place(16, 4)),
        ("hw.flags", place(20, 4)),
        ("hw.raw", place(16, 8)),
        ("flags", place(44, 4)),
        ("table", place(80, 120)),
        ("own", Err(Unknown::Member)),
        ("owners", Err(Unknown::Member)),
        ("", Err(Unknown::Member)),
        ("hw.", Err(Unknown::Member)),
        ("owner.first", Err(Unknown::Member)),
        ("table.first", Err(Unknown::Member)),
    ] {
        assert_eq!(btf.member("perf_event", path), expected, "{path}");
    }
    assert_eq!(btf.size_of("perf_event"), Ok(200));
    assert_eq!(btf.size_of("hw_perf_event"), Ok(24));
    assert_eq!(btf.size_of("perf"), Err(Unknown::Structure));
    assert_eq!(btf.size_of("task_struct"), Err(Unknown::Structure));
}

#[test]
fn every_kind_has_its_size() {
    let mut maker = Maker::new();
    let long = maker.int(8);
    let qualifiers = [9, CONST, 11, 18].map(|kind| maker.add(kind, "", 0, long, &[]));
    let small = maker.add(6, "small", 1, 4, &[0, 7]);
    let large = maker.add(19, "large", 1, 8, &[0, 7, 7]);
    let float = maker.add(16, "float", 0, 4, &[]);
    let [volatile, constant, restrict, tag] = qualifiers;
    let members = [
        ("volatile", volatile, 8),
        ("const", constant, 8),
        ("restrict", restrict, 8),
        ("tag", tag, 8),
        ("enum", small, 4),
        ("enum64", large, 8),
        ("float", float, 4),
    ];
    maker.structure(
        STRUCT,
        "all",
        0,
        &members.map(|(name, of, _)| (name, of, 0)),
    );
    let data = maker.done();
    let btf = read(&data, ["all"]).unwrap();
    for (name, _, size) in members {
        assert_eq!(btf.member("all", name), place(0, size), "{name}");
    }
}

#[test]
fn bit_fields_are_refused() {
    let mut maker = Maker::new();
    let int = maker.int(4);
    let width = |bits: u32, width: u32| (width << 24) | bits;
    maker.structure(
        STRUCT | HAS_WIDTHS,
        "x86_pmu",
        8,
        &[
            ("whole", int, width(32, 0)),
            ("bts", int, width(0, 1)),
            ("late", int, width(8, 2)),
        ],
    );
    // As older encoders write them.
    maker.structure(STRUCT, "old", 8, &[("bts", int, 3)]);
    let data = maker.done();
    let btf = read(&data, ["x86_pmu", "old"]).unwrap();
    assert_eq!(btf.member("x86_pmu", "whole"), place(4, 4));
    assert_eq!(btf.member("x86_pmu", "bts"), Err(Unknown::BitField));
    assert_eq!(btf.member("x86_pmu", "late"), Err(Unknown::BitField));
    assert_eq!(btf.member("old", "bts"), Err(Unknown::BitField));
}

#[test]
fn structures_of_one_name_have_to_agree() {
    let mut maker = Maker::new();
    let int = maker.int(4);
    for offset in [0, 32] {
        let members = [("same", int, 64), ("other", int, offset)];
        maker.structure(STRUCT, "pmu", 12, &members);
    }
    for _ in 0..5 {
        maker.structure(STRUCT, "often", 12, &[("same", int, 64)]);
    }
    let data = maker.done();
    let btf = read(&data, ["pmu", "often"]).unwrap();
    assert_eq!(btf.size_of("pmu"), Ok(12));
    assert_eq!(btf.member("pmu", "same"), place(8, 4));
    assert_eq!(btf.member("pmu", "other"), Err(Unknown::Ambiguous));
    assert_eq!(btf.member("pmu", "none"), Err(Unknown::Member));
    // More than the parser remembers.
    assert_eq!(btf.member("often", "same"), Err(Unknown::Ambiguous));
}

/// A structure without a name is found by its typedef's name, before or behind it.
#[test]
fn structures_are_found_by_their_typedefs() {
    let mut maker = Maker::new();
    let int = maker.int(4);
    maker.add(TYPEDEF, "ahead_t", 0, int + 2, &[]);
    let unnamed = maker.structure(STRUCT, "", 12, &[("count", int, 64)]);
    maker.add(TYPEDEF, "behind_t", 0, unnamed, &[]);
    maker.add(TYPEDEF, "int_t", 0, int, &[]);
    let data = maker.done();
    let btf = read(&data, ["ahead_t", "behind_t", "int_t", "none_t"]).unwrap();
    for name in ["ahead_t", "behind_t"] {
        assert_eq!(btf.size_of(name), Ok(12));
        assert_eq!(btf.member(name, "count"), place(8, 4));
    }
    assert_eq!(btf.member("int_t", "count"), Err(Unknown::Member));
    assert_eq!(btf.size_of("none_t"), Err(Unknown::Structure));
}

/// The index of types contains each type, then each second type, and so on.
#[test]
fn types_are_found_by_their_numbers() {
    for types in [1, 200, 255, 256, 257, 511, 512, 513, 5000] {
        let mut maker = Maker::new();
        let ints: Vec<u32> = (0..types).map(|n| maker.int(n)).collect();
        let names: Vec<String> = (0..types).map(|n| format!("m{n}")).collect();
        let members: Vec<(&str, u32, u32)> = (0..types as usize)
            .map(|n| (&*names[n], ints[n], 8 * n as u32))
            .collect();
        maker.structure(STRUCT, "all", 1, &members);
        let data = maker.done();
        let btf = read(&data, ["all"]).unwrap();
        for n in 0..types {
            assert_eq!(btf.member("all", &names[n as usize]), place(n, n));
        }
    }
}

#[test]
fn contradictory_types_are_refused() {
    let mut maker = Maker::new();
    let own = maker.last + 1;
    maker.structure(
        STRUCT,
        "own",
        8,
        &[("", own, 0), ("", own, 0), ("self", own, 0)],
    );
    let alias = maker.last + 1;
    maker.add(TYPEDEF, "alias", 0, alias, &[]);
    maker.structure(
        STRUCT,
        "users",
        8,
        &[("a", alias, 0), ("b", 0, 0), ("c", 1000, 0)],
    );
    let big = maker.array(1, u32::MAX);
    let row = maker.array(1, 1 << 16);
    let rows = maker.array(row, 1 << 16);
    maker.structure(STRUCT, "big", 8, &[("a", big, 0), ("b", rows, 0)]);
    let data = maker.done();
    let btf = read(&data, ["own", "users", "big"]).unwrap();
    // The structure contains itself twice: the search must end nevertheless.
    assert!(btf.member("own", "none").is_err());
    for member in ["a", "b", "c"] {
        assert_eq!(btf.member("users", member), Err(Unknown::Malformed));
    }
    for member in ["a", "b"] {
        assert_eq!(btf.member("big", member), Err(Unknown::Malformed));
    }
}

#[test]
fn headers_are_checked() {
    let mut maker = Maker::new();
    maker.structure(STRUCT, "one", 8, &[]);
    let good = maker.done();
    let is = |data: &[u8]| read(data, ["one"]).map(|btf| btf.size_of("one"));
    assert_eq!(is(&good), Ok(Ok(8)));
    assert_eq!(is(&[]), Err(Unknown::NoBtf));
    for (at, value, expected) in [
        (0, 0xeb, Unknown::NoBtf),
        (2, 2, Unknown::NoBtf),
        (4, 23, Unknown::Malformed),
        (7, 0xff, Unknown::Malformed),
        (11, 0xff, Unknown::Malformed),
        (15, 0xff, Unknown::Malformed),
        (19, 0xff, Unknown::Malformed),
        (23, 0xff, Unknown::Malformed),
        // The kind, and the number of members.
        (24 + 7, 100, Unknown::Kind(100)),
        (24 + 6, 1, Unknown::Malformed),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(is(&bad).map(drop), Err(expected), "{at}");
    }
    for length in 0..good.len() {
        assert!(is(&good[..length]).is_err(), "{length}");
    }
}

/// A header that gives the length of types of other kinds, as since Linux 7.1.
#[test]
fn unknown_kinds_are_skipped_by_their_layout() {
    let mut maker = Maker::new();
    // Two words, and three per element.
    maker.add(30, "", 2, 0, &[9; 8]);
    maker.structure(STRUCT, "one", 8, &[]);
    let types = maker.types.len() as u32 * 4;
    let strings = maker.strings.len() as u32;
    let layouts: Vec<[u8; 4]> = (0..31)
        .map(|kind| if kind == 30 { [8, 12, 0, 0] } else { [0; 4] })
        .collect();
    let layout_at = types + strings;
    let words = [32, 0, types, types, strings, layout_at, 4 * 31];
    let mut data = vec![0x9f, 0xeb, 1, 0];
    for word in words.iter().chain(&maker.types) {
        data.extend(word.to_le_bytes());
    }
    data.extend(&maker.strings);
    data.extend(layouts.concat());
    let btf = read(&data, ["one"]).unwrap();
    assert_eq!(btf.size_of("one"), Ok(8));
}

/// Makes all kinds of queries.
fn use_all(data: &[u8]) {
    let Ok(btf) = read(data, ["perf_event", "pmu", "x86_pmu", "a"]) else {
        return;
    };
    for structure in ["perf_event", "pmu", "x86_pmu", "a", "b"] {
        let _ = btf
            .size_of(structure)
            .map_err(|unknown| unknown.to_string());
        for member in ["hw", "hw.idx", "a", "b", "a.b.c", "none"] {
            let place = btf.member(structure, member);
            let _ = place.map(|place| place.to_string());
        }
    }
}

fn word() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0u32..40, 1 => any::<u32>(), 1 => (0u32..32).prop_map(|bit| 1 << bit)]
}

/// Usually a known kind, often a structure: one type of an unknown kind makes all of BTF unknown.
fn kind() -> impl Strategy<Value = u32> {
    prop_oneof![50 => 1u32..20, 50 => STRUCT..=UNION, 1 => 0u32..21]
}

proptest! {
    #[test]
    fn random_data_does_not_panic(words in prop::collection::vec(word(), 0..200)) {
        let mut maker = Maker::new();
        for name in ["perf_event", "pmu", "x86_pmu", "a", "b", "hw", "idx"] {
            maker.string(name);
        }
        maker.types = words;
        use_all(&maker.done());
    }

    #[test]
    fn random_types_do_not_panic(
        types in prop::collection::vec(
            (kind(), word(), 0u32..6, word(), prop::collection::vec(word(), 0..18)),
            1..40,
        ),
    ) {
        let names = ["", "perf_event", "pmu", "x86_pmu", "a", "b", "hw", "idx"];
        let mut maker = Maker::new();
        let at: Vec<u32> = names.iter().map(|name| maker.string(name)).collect();
        for (kind, name, elements, word, mut more) in types {
            let elements = if kind == 12 { 0 } else { elements };
            let each = match kind { 4 | 5 | 15 | 19 => 3, 6 | 13 => 2, _ => 0 };
            let own = match kind { 1 | 14 | 17 => 1, 3 => 3, _ => 0 };
            more.resize(own + each * elements as usize, 1);
            if each == 3 {
                for member in more.chunks_mut(3) {
                    member[0] = at[member[0] as usize % at.len()];
                }
            }
            maker.types.extend([at[name as usize % at.len()], (kind << 24) | elements, word]);
            maker.types.extend(more);
        }
        use_all(&maker.done());
    }
}

/// C source with structures, and the members whose layouts BTF must report as the compiler does.
const C: &str = r"
struct list { struct list *next, *prev; };
typedef struct { int counter; } atomic;
typedef struct {
	unsigned short flags;
	struct list waiters;
	atomic allowed;
} context;
struct sample {
	char first;
	struct {
		short second;
		union { long third; struct { char fourth[3]; const volatile int fifth; }; };
	};
	context context;
	unsigned int bits:3, more:5;
	unsigned long matrix[3][7];
	struct { void (*call)(int); enum { A, B } which; } last[2];
	__int128 wide;
	double real;
	_Bool flag;
	struct list flexible[];
};
struct sample sample;
union either { struct sample sample; char bytes[4096]; } either;
#define SAMPLE(member) PLACE(struct sample, member)
void places(void)
{
	SAMPLE(first) SAMPLE(second) SAMPLE(third) SAMPLE(fourth) SAMPLE(fifth)
	SAMPLE(context) SAMPLE(context.flags) SAMPLE(context.waiters)
	SAMPLE(context.waiters.prev) SAMPLE(context.allowed) SAMPLE(context.allowed.counter)
	SAMPLE(matrix) SAMPLE(last) SAMPLE(wide) SAMPLE(real) SAMPLE(flag)
	PLACE(union either, sample.context.waiters.prev) PLACE(union either, bytes)
}
";

/// Returns the path of a kernel's source, or prints that there is nothing to compare with.
fn kernel() -> Option<PathBuf> {
    let tree = std::env::var_os("KERNEL_SOURCE");
    if tree.is_none() {
        eprintln!("not compared: KERNEL_SOURCE is not set");
    }
    tree.map(PathBuf::from)
}

fn run(command: &mut Command) {
    let done = command.status();
    assert!(done.is_ok_and(|status| status.success()), "{command:?}");
}

/// The C compiler's layouts against pahole's BTF of the same file.
#[test]
fn same_as_the_compiler() {
    if kernel().is_none() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("rpmu-btf-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str| dir.join(name);
    let place = r#"
#define PLACE(in, member) asm volatile("\n.ascii \"->" #in " " #member " %c0 %c1\"" : : \
	"i" (__builtin_offsetof(in, member)), "i" (sizeof(((in *)0)->member)));
"#;
    std::fs::write(file("sample.c"), format!("{place}{C}")).unwrap();
    let gcc = |options: &[&str], to: &str| {
        run(Command::new("gcc-14")
            .args(options)
            .arg("-o")
            .arg(file(to))
            .arg(file("sample.c")));
    };
    gcc(&["-g", "-c"], "sample.o");
    gcc(&["-S"], "sample.s");
    let mut detached = std::ffi::OsString::from("--btf_encode_detached=");
    detached.push(file("btf"));
    run(Command::new("pahole").arg(detached).arg(file("sample.o")));
    let data = std::fs::read(file("btf")).unwrap();
    let text = std::fs::read_to_string(file("sample.s")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();

    let btf = read(&data, ["sample", "either"]).unwrap();
    let mut compared = 0;
    for line in text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".ascii \"->"))
    {
        let words: Vec<&str> = line.split(&[' ', '"']).collect();
        let number = |n: usize| words[n].parse().unwrap();
        let found = btf.member(words[1], words[2]);
        assert_eq!(found, self::place(number(3), number(4)), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 18);
    assert_eq!(btf.member("sample", "more"), Err(Unknown::BitField));
    assert_eq!(btf.member("sample", "flexible").unwrap().size, 0);
}

/// Returns the BTF of the kernel image beside its source.
fn of_kernel(tree: &Path) -> Vec<u8> {
    let image = std::fs::read(tree.parent().unwrap().join("vmlinuz")).expect("the kernel's image");
    let zstd = [0x28, 0xb5, 0x2f, 0xfd];
    let starts = image
        .windows(4)
        .enumerate()
        .filter(|(_, bytes)| *bytes == zstd);
    for (start, _) in starts {
        let mut unzstd = Command::new("zstd")
            .arg("-dcq")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("zstd");
        let mut stdin = unzstd.stdin.take().unwrap();
        let packed = image[start..].to_vec();
        // Ignore errors about the data behind the compressed kernel.
        let feed = std::thread::spawn(move || drop(stdin.write_all(&packed)));
        let kernel = unzstd.wait_with_output().unwrap().stdout;
        feed.join().unwrap();
        let magic = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0];
        if let Some(at) = kernel.windows(12).position(|bytes| bytes == magic) {
            // The strings are last.
            let word = |n| u32::from_le_bytes(kernel[at + n..][..4].try_into().unwrap()) as usize;
            return kernel[at..at + 24 + word(16) + word(20)].to_vec();
        }
    }
    panic!("no BTF in the kernel's image");
}

/// The lines of `rust/layouts.c` against the kernel's BTF. Offsets are compared when rpmu is
/// loaded.
#[test]
fn the_members_of_the_table_are_in_the_kernel() {
    let Some(tree) = kernel() else {
        return;
    };
    let data = of_kernel(&tree);
    let table = include_str!("../../../rust/layouts.c");
    let mut members = 0;
    for line in table.replace(",\n\t\t ", ",").lines() {
        let Some((kind, rest)) = line.trim().split_once('(') else {
            continue;
        };
        let words: Vec<&str> = rest.split([',', ')']).map(str::trim).collect();
        let (structure, member) = match kind {
            "MEMBER" | "MEMBER_AS" | "TYPE_MEMBER" | "TAIL" => (words[0], Some(words[1])),
            "SIZE" => (words[0], None),
            "X86_PMU" => ("x86_pmu", Some(words[0])),
            "CPU_HW_EVENTS" => ("cpu_hw_events", Some(words[0])),
            _ => continue,
        };
        let btf = read(&data, [structure]).unwrap();
        match member {
            Some(member) => {
                let place = btf
                    .member(structure, member)
                    .map_err(|unknown| unknown.to_string());
                let has_size = kind != "TAIL";
                assert!(place.is_ok_and(|it| (it.size > 0) == has_size), "{line}");
            }
            None => assert!(btf.size_of(structure).is_ok(), "{line}"),
        }
        members += 1;
    }
    assert!(members > 80, "{members} lines were understood");
}

/// The kernel's BTF, damaged in a few places.
#[test]
fn damaged_btf_does_not_panic() {
    let Some(tree) = kernel() else {
        return;
    };
    let mut data = of_kernel(&tree);
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) as usize % below
    };
    for _ in 0..100 {
        let damage: Vec<(usize, u8)> = (0..3)
            .map(|_| (24 + next(5_000_000), next(256) as u8))
            .collect();
        let good: Vec<u8> = damage.iter().map(|&(at, _)| data[at]).collect();
        for &(at, bad) in &damage {
            data[at] = bad;
        }
        use_all(&data);
        for (&(at, _), good) in damage.iter().zip(good).rev() {
            data[at] = good;
        }
    }
    for _ in 0..20 {
        let length = next(data.len());
        assert!(read(&data[..length], ["pmu"]).is_err());
    }
}
