"""Finds a piece of C++ in a source by its shape: the same tokens, but for names that were changed everywhere alike."""

from __future__ import annotations

import dataclasses
import re

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>(?:u8|[uUL])?R"(?P<end>[^()\s\\]*)\(.*?\)(?P=end)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|[uUL]?'(?:[^'\\\n]|\\.)+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign><=>|<<=|>>=|->\*|\.\.\.|->|::|\+\+|--|<<|[-+*/%&|^<>=!]=|&&|\|\||.)""",
    re.DOTALL | re.VERBOSE,
)

# Names that the language or the list of faults gives: no rename changes them.
FIXED = frozenset(
    """alignas alignof and asm auto bool break case catch char char8_t char16_t char32_t class co_await co_return co_yield concept const
    const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
    false final float for friend goto if inline int long mutable namespace new noexcept not nullptr operator or override private
    protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast std struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    PLANTED""".split()
)


@dataclasses.dataclass(frozen=True)
class Token:
    """A word of C++ and where it stands. `is_name`: the sources give it this name, so a rename may change it."""

    text: str
    start: int
    end: int
    is_name: bool


@dataclasses.dataclass(frozen=True)
class Match:
    """A place of a source and, for each name of the text that was looked for, the name that stands there."""

    start: int
    end: int
    names: dict[str, str]

    def renamed(self) -> dict[str, str]:
        """The names that are not the same."""
        return {old: new for old, new in self.names.items() if old != new}


def tokens(text: str) -> list[Token]:
    """The tokens of C++, without comments and white space. The names of namespace std count as fixed."""
    found: list[Token] = []
    in_std = False
    for match in TOKEN.finditer(text):
        if match.lastgroup == "space":
            continue
        word, is_name = match.group(), match.group("name") is not None
        after_colons = bool(found) and found[-1].text == "::"
        in_std = word == "std" or (in_std and (word == "::" or after_colons))
        found.append(Token(word, match.start(), match.end(), is_name and not in_std and word not in FIXED))
    return found


def match_at(wanted: list[Token], there: list[Token], begin: int) -> Match | None:
    """The match that begins with this token, if the shape is the same there."""
    names: dict[str, str] = {}
    for old, new in zip(wanted, there[begin : begin + len(wanted)], strict=True):
        if old.is_name != new.is_name or (not old.is_name and old.text != new.text):
            return None
        if old.is_name and names.setdefault(old.text, new.text) != new.text:
            return None
    # Two names that became one, as in a + b and a + a, are another expression.
    if len(set(names.values())) != len(names):
        return None
    return Match(there[begin].start, there[begin + len(wanted) - 1].end, names)


def may_begin(wanted: list[Token], before: str) -> bool:
    """Whether the wanted tokens can begin after this token: no statement begins within another one, and no name in a chain."""
    if wanted[-1].text == ";" and wanted[0].is_name:
        return before in {"", ";", "{", "}", ")", ":", "else"}
    return not wanted[0].is_name or before not in {".", "->", "::"}


def matches(text: str, source: str) -> list[Match]:
    """The places of the source that have the shape of the text and need the fewest renames: several are equally likely.

    A rename of a name that the source still has counts more than any number of others: a name that was changed everywhere is gone.
    """
    wanted, there = tokens(text), tokens(source)
    if not wanted:
        return []
    found: list[Match] = []
    for begin in range(len(there) - len(wanted) + 1):
        if there[begin].is_name == wanted[0].is_name:
            match = match_at(wanted, there, begin)
            if match and (not match.renamed() or may_begin(wanted, there[begin - 1].text if begin else "")):
                found.append(match)
    present = {token.text for token in there}
    costs = [(len(present & one.renamed().keys()), len(one.renamed())) for one in found]
    return [one for one, cost in zip(found, costs, strict=True) if cost == min(costs)]


def translated(text: str, names: dict[str, str]) -> str:
    """The text with other names."""
    done, result = 0, ""
    for token in tokens(text):
        result += text[done : token.start] + (names.get(token.text, token.text) if token.is_name else token.text)
        done = token.end
    return result + text[done:]
