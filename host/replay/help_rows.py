"""Which row of advice.def a help line is made of, what stands in its holes, and how that row is tried."""
import re
from dataclasses import dataclass, field

import def_tables

NUMBER = r"-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?"
WORD = r"[A-Za-z_][A-Za-z0-9_]*"
NUMBERS = frozenset(("eps", "gap", "limit", "log_limit", "log2_limit", "bits", "least", "most"))
HOLE = re.compile(r"\{(\w+)\}")
CODE = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Trial:
    """How a row is tried. `role`: result, operand, types, line, argument, select, scaled, attention; no, where the dump
    has not what it takes; aside, where the row is no change of the op. `target`: of what operand, argument or type."""

    role: str
    target: str = ""
    names: dict = field(default_factory=dict, hash=False)  # of the code -> sources
    do: str = ""  # an expression that stands for the code
    like: str = ""  # what healthy values are to be compared with, where it is not the op's result
    code: int = 0  # which of the code spans that compute something
    reason: str = ""  # of no and aside


@dataclass
class HelpLine:
    text: str
    row: int | None = None  # in advice.def
    trial: Trial = field(default_factory=lambda: Trial("no", reason="it is none of the help that numsan gives"))
    holes: dict = field(default_factory=dict)


def is_code(sentence):
    """Whether something between backticks is more than a name."""
    return any(re.search(r"[^\w{}.]", span) for span in CODE.findall(sentence))


def parsed_trial(text):
    """`operand:1 b=1 do=b+eps`"""
    role, *settings = text.split(" ")
    if role in ("no", "aside"):
        return Trial(role, reason=" ".join(settings))
    role, _, target = role.partition(":")
    given = dict(setting.split("=", 1) for setting in settings)
    special = {name: given.pop(name) for name in ("do", "like", "code") if name in given}
    special["code"] = int(special.get("code", 0))
    return Trial(role, target, given, **special)


def _pattern(sentence):
    parts, at = [], 0
    for hole in HOLE.finditer(sentence):
        parts.append(re.escape(sentence[at:hole.start()]))
        name = hole[1]
        parts.append(f"(?P<{name}>{NUMBER if name in NUMBERS else WORD})" if f"(?P<{name}>" not in "".join(parts)
                     else f"(?P={name})")
        at = hole.end()
    return re.compile("".join(parts) + re.escape(sentence[at:]))


class HelpRows:
    """All rows of advice.def, ready to recognise help lines."""

    def __init__(self):
        table = def_tables.advice()
        self.rows = [(sentence, _pattern(sentence), parsed_trial(fields.get("trial", "no it has no trial")))
                     for sentence, fields in table]
        self._forward = [bool(fields.get("forward")) or "forward op" in sentence or fields.get("facts") == "hidden"
                         for sentence, fields in table]

    def of_forward(self, row):
        """Whether a row is about the op of the forward line, in the backward pass."""
        return self._forward[row]

    def recognise(self, text):
        """The line, with the first row that it can be of."""
        for i, (_, pattern, trial) in enumerate(self.rows):
            match = pattern.fullmatch(text)
            if match:
                holes = {name: float(value) if name in NUMBERS else value for name, value in match.groupdict().items()}
                return HelpLine(text, i, trial, holes)
        return HelpLine(text)


def code_of(line):
    """(assignments, the expression) of the code of a help line, "" where there is none."""
    spans, wanted = CODE.findall(line.text), line.trial.do
    assigned = [span for span in spans if re.match(r"[a-z_]+ = ", span) or re.fullmatch(r"[a-z_]+=[0-9.e-]+", span)]
    computing = [span for span in spans if span not in assigned and re.search(r"[^\w]", span)]
    code = computing[line.trial.code] if line.trial.code < len(computing) else ""
    if code.startswith("/ "):
        code = f"a {code}"
    if code.startswith("."):
        code = f"x{code}"
    return [span for span in assigned if not wanted or re.search(rf"\b{span.split('=')[0].strip()}\b", wanted)], code
