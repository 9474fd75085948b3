"""Rules of an allow-list, against findings of a report, matched as the library matches them.

That is in host/finding/allow_list.cpp; tests/host/finding/allow_cases.def has cases that both are asked.
"""
from __future__ import annotations

import re
import typing

FIELDS = ("op", "file", "module", "code", "category")
CODES = frozenset(f"NS{number}" for number in range(101, 116))  # those of host/finding/mechanisms.def
CATEGORIES = frozenset(("U", *(f"N{number}" for number in range(1, 10))))  # those of host/finding/categories.def
BLANKS = " \t\r\v\f"
LARGEST_LINE = 2**31 - 1

Finding = dict[str, typing.Any]
Condition = tuple[str, str, int]  # field, pattern, line or 0


def rule(text: str) -> list[Condition]:
    """The conditions of one rule, all of which must hold. ValueError: it is none."""
    if "\n" in text.strip("\n"):
        raise ValueError("allow: expected one line, or a list of them")
    conditions = [_condition(word) for word in _words(text.strip("\n"))]
    if not conditions:
        raise ValueError("allow: an empty rule")
    return conditions


def _words(line: str) -> list[str]:
    """Up to the comment; a `#` inside a word is part of it."""
    words: list[str] = []
    for word in re.split(f"[{BLANKS}]+", line.strip(BLANKS)):
        if word.startswith("#"):
            break
        words += [word] if word else []
    return words


def _condition(word: str) -> Condition:
    name, _, value = word.partition(":")
    if name not in FIELDS or not value:
        raise ValueError(f"allow: {word!r}: expected one of {', '.join(FIELDS)}, followed by ':' and a value")
    if name == "file":
        return _file(word, value)
    if name == "code" and value not in CODES:
        raise ValueError(f"allow: {word!r}: expected a code such as NS104")
    if name == "category" and value not in CATEGORIES:
        raise ValueError(f"allow: {word!r}: expected a category such as N8")
    return name, value, 0


def _file(word: str, value: str) -> Condition:
    path, colon, number = value.rpartition(":")
    if colon and not (path and re.fullmatch("[0-9]+", number) and 1 <= int(number) <= LARGEST_LINE):
        raise ValueError(f"allow: {word!r}: expected PATH or PATH:LINE, lines from 1")
    path = path if colon else value
    while path.startswith("./"):
        path = path[2:]
    if not path:
        raise ValueError(f"allow: {word!r}: expected a path after the ':'")
    return "file", path, int(number) if colon else 0


def _glob(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _ends(pattern: str, path: str) -> bool:
    """The whole path, or what follows any of its slashes."""
    parts = path.split("/")
    return any(_glob(pattern, "/".join(parts[start:])) for start in range(len(parts)))


def _holds(condition: Condition, finding: Finding, folder: str) -> bool:
    field, pattern, line = condition
    forward = finding.get("forward") or {}
    if field == "op":
        names = [name for name in (finding["op"], forward.get("op")) if name is not None]
        return any(_glob(pattern, name) or _glob(pattern, name.split(".")[0]) for name in names)
    if field == "module":
        modules = (finding.get("module"), forward.get("module"))
        return any(_glob(pattern, name) for name in modules if name is not None)
    if field == "file":
        places = [place for place in (finding.get("location"), finding.get("user_location"), forward.get("location"))
                  if place]
        return any((line == 0 or place["line"] == line) and _ends(pattern, _absolute(place["file"], folder))
                   for place in places)
    if field == "code":
        return bool(finding["code"] == pattern)
    return bool(finding["category"]["id"] == pattern)


def _absolute(file: str, folder: str) -> str:
    return file if file.startswith("/") or not folder else f"{folder}/{file}"


def allows(rules: list[list[Condition]], finding: Finding, folder: str = "") -> bool:
    """Whether one of the rules matches. Relative files of the finding lie in `folder`."""
    return any(all(_holds(condition, finding, folder) for condition in conditions) for conditions in rules)
