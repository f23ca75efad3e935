# SPDX-License-Identifier: GPL-2.0
"""The parts of Rust's syntax that the rules need: tokens, paths, names of items.

This is not a parser: the compiler has accepted the source already. Comments and
strings that look like code must not be taken for code, and paths inside macros
count. The crate syn would not replace it: for syn, the input of a macro is plain
tokens, too. Clippy checks the comments on `unsafe`.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<line_comment>//[^\n]*)
  | (?P<block_comment>/\*)
  | (?P<raw_string>\b(?:b|c)?r(?P<hashes>\#*)"(?s:.*?)"(?P=hashes))
  | (?P<string>\b[bc]?"(?:\\(?s:.)|[^"\\])*"|"(?:\\(?s:.)|[^"\\])*")
  | (?P<char>\bb?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])'|'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\\n])')
  | (?P<lifetime>'[A-Za-z_]\w*)
  | (?P<ident>(?:r\#)?[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<punct>::|=>|->|.)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str  # ident, punct, string, lifetime, number
    text: str
    line: int


class Source:
    """The tokens of a file."""

    def __init__(self, text):
        self.tokens = []
        self._scan(text)

    def _scan(self, text):
        position, line = 0, 1
        while position < len(text):
            match = _TOKEN.match(text, position)
            kind, end = match.lastgroup, match.end()
            if kind == "block_comment":
                end = _end_of_block_comment(text, position)
            token = text[position:end]
            if kind in ("string", "raw_string", "char"):
                self.tokens.append(Token("string", token, line))
            elif kind not in ("space", "line_comment", "block_comment"):
                self.tokens.append(Token(kind, token, line))
            line += token.count("\n")
            position = end


def _end_of_block_comment(text, start):
    depth, position = 0, start
    while position < len(text):
        if text.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    return len(text)


class Path(NamedTuple):
    """A path as it is written, such as crate::perf::Event, and its place."""

    segments: tuple
    line: int
    module: tuple  # the inline modules around it
    is_test: bool  # within an item under #[cfg(test)]
    name: str = ""  # the name that a `use` gives it here
    is_public: bool = False  # re-exported by `pub use`

    def in_crate(self, file_module):
        """Returns the path from the crate's root on, or None if its start is unknown."""
        module = list(file_module + self.module)
        rest = list(self.segments)
        if rest[0] == "crate":
            return tuple(rest[1:])
        if rest[0] not in ("self", "super"):
            return None
        while rest and rest[0] in ("self", "super"):
            if rest.pop(0) == "super" and module:
                module.pop()
        return tuple(module + rest)


def paths(source):
    """Returns every path in the source; the trees of `use` become one path per leaf."""
    tokens = source.tokens
    found = []
    depth = 0
    modules = []  # (name, depth of its braces, is under #[cfg(test)])
    pending = None
    test_attribute = False
    index = 0
    while index < len(tokens):
        token = tokens[index]
        module = tuple(name for name, _, _ in modules)
        is_test = any(test for _, _, test in modules)
        if token.text == "{":
            depth += 1
            if pending is not None:
                modules.append((pending, depth, test_attribute))
                pending, test_attribute = None, False
        elif token.text == "}":
            if modules and modules[-1][1] == depth:
                modules.pop()
            depth -= 1
        elif token.text == ";":
            test_attribute = False
        elif _is(tokens, index, "#", "[", "cfg", "(", "test", ")", "]"):
            test_attribute = True
            index += 7
            continue
        elif token.text == "mod" and index + 2 < len(tokens) and tokens[index + 2].text == "{":
            pending = tokens[index + 1].text
            index += 2
            continue
        elif token.text == "use" and not _is(tokens, index + 1, "<"):
            is_public = index > 0 and tokens[index - 1].text in ("pub", ")")
            leaves, index = _use_tree(tokens, index + 1, ())
            for leaf, line, name in leaves:
                found.append(Path(leaf, line, module, is_test or test_attribute, name, is_public))
            continue
        elif _is(tokens, index, "pub", "(", "in"):  # a visibility, not a use
            while tokens[index].text != ")":
                index += 1
        elif _is(tokens, index, "extern", "crate"):
            found.append(Path((tokens[index + 2].text,), token.line, module, is_test))
            index += 2
        elif token.kind == "ident" and _is(tokens, index + 1, "::"):
            segments, line = [token.text], token.line
            while _is(tokens, index + 1, "::") and index + 2 < len(tokens):
                if tokens[index + 2].kind != "ident":
                    break
                segments.append(tokens[index + 2].text)
                index += 2
            found.append(Path(tuple(segments), line, module, is_test))
        index += 1
    return found


def _is(tokens, index, *texts):
    return [token.text for token in tokens[index : index + len(texts)]] == list(texts)


def _use_tree(tokens, index, prefix):
    """Returns the leaves of the tree that starts at `index`, with the names that they get, and the index after it."""
    segments, line, name = list(prefix), tokens[index].line, None
    while index < len(tokens):
        token = tokens[index]
        if token.text == "{":
            leaves, index = [], index + 1
            while tokens[index].text != "}":
                more, index = _use_tree(tokens, index, tuple(segments))
                leaves += more
                if tokens[index].text == ",":
                    index += 1
            return leaves, index + 1
        if token.text in (",", "}", ";"):
            break
        if token.text == "as":
            name = tokens[index + 1].text
            index += 2
            continue
        if token.text != "::":
            segments.append(token.text)
            line = token.line
        index += 1
    if name is None:
        name = segments[-2] if segments[-1] == "self" and len(segments) > 1 else segments[-1]
    return [(tuple(segments), line, name)], index


def definitions(source):
    """Returns the names of all items that the source defines at any level, except modules."""
    found = set()
    for index, token in enumerate(source.tokens[:-1]):
        if token.text in ("const", "enum", "fn", "static", "struct", "trait", "type", "union"):
            found.add(source.tokens[index + 1].text)
        elif _is(source.tokens, index, "macro_rules", "!"):
            found.add(source.tokens[index + 2].text)
    return found


def test_modules(source):
    """Yields the modules that the source declares for tests only, in separate files or inline."""
    for index, token in enumerate(source.tokens):
        if _is(source.tokens, index, "#", "[", "cfg", "(", "test", ")", "]", "mod"):
            yield source.tokens[index + 8].text


def files_taken_in(source):
    """Yields the lines that include another file by its path instead of its module."""
    for index, token in enumerate(source.tokens):
        if _is(source.tokens, index, "[", "path", "="):
            yield token.line
        elif token.text in ("include", "include_str", "include_bytes") and _is(source.tokens, index + 1, "!"):
            yield token.line
