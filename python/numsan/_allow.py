"""Rules of an allow-list, matched as the library matches them (docs/allow-list.md), against findings of a report."""
from __future__ import annotations

import re
import typing

FIELDS = ("op", "file", "module", "code", "category")

Finding = dict[str, typing.Any]
Condition = tuple[str, str, int]  # field, pattern, line or 0


def rule(text: str) -> list[Condition]:
    """The conditions of one rule, all of which must hold. ValueError: it is none."""
    conditions = []
    for word in text.split():
        name, _, value = word.partition(":")
        if name not in FIELDS or not value:
            raise ValueError(f"allow: {word!r}: expected one of {', '.join(FIELDS)}, followed by ':' and a value")
        line = 0
        if name == "file" and (numbered := re.fullmatch(r"(.+):([1-9]\d*)", value)):
            value, line = numbered[1], int(numbered[2])
        if name == "code" and not re.fullmatch(r"NS\d{3}", value):
            raise ValueError(f"allow: {word!r}: expected a code such as NS104")
        conditions.append((name, value.removeprefix("./") if name == "file" else value, line))
    if not conditions:
        raise ValueError("allow: an empty rule")
    return conditions


def _glob(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def _ends(pattern: str, path: str) -> bool:
    """The whole path, or what follows any of its slashes."""
    parts = path.split("/")
    return any(_glob(pattern, "/".join(parts[start:])) for start in range(len(parts)))


def _holds(condition: Condition, finding: Finding) -> bool:
    field, pattern, line = condition
    forward = finding.get("forward") or {}
    if field == "op":
        names = [name for name in (finding["op"], forward.get("op")) if name]
        return any(_glob(pattern, name) or _glob(pattern, name.split(".")[0]) for name in names)
    if field == "module":
        return any(_glob(pattern, name) for name in (finding.get("module"), forward.get("module")) if name)
    if field == "file":
        places = [place for place in (finding.get("location"), finding.get("user_location"), forward.get("location"))
                  if place]
        return any((line == 0 or place["line"] == line) and _ends(pattern, place["file"]) for place in places)
    if field == "code":
        return bool(finding["code"] == pattern)
    return bool(finding["category"]["id"] == pattern)


def allows(rules: list[list[Condition]], finding: Finding) -> bool:
    """Whether one of the rules matches."""
    return any(all(_holds(condition, finding) for condition in conditions) for conditions in rules)
