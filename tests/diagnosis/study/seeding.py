"""Programs with a fault: a base of bases/ and a row of faults/, which says what is replaced by what.

A table is text. `place NAME: TEXT` names the lines of the program that contain the text. `== KIND` or `== KIND:
VARIANT` begins a row; lines `- ` are the text that goes, lines `+ ` what comes for it. Both may be parts of lines, a
row may have several pairs, and the text that goes must be there exactly once.
"""
import pathlib
from typing import NamedTuple

from fault_kinds import KINDS

FOLDER = pathlib.Path(__file__).resolve().parent
# Fixed before numsan ran on any of them. Rules may be changed in view of OPEN; of HELD only the score is looked at.
OPEN = ("cnn_digits", "contrastive_halves", "encoder_tokens", "gan_ring", "lstm_sine", "mlp_digits", "tabular_cancer")
HELD = ("autoencoder_digits", "decoder_text", "gru_digits", "policy_gradient", "regression_diabetes", "resnet_fake",
        "wine_tanh")
BASES = tuple(sorted(OPEN + HELD))


class Seeded(NamedTuple):
    """A program: its text, the fault in it (None: healthy), and the lines that may be named for it."""
    name: str
    base: str
    kind: str | None
    text: str
    lines: frozenset

    @property
    def code(self):
        return KINDS[self.kind].code if self.kind else None


class Table(NamedTuple):
    places: dict
    rows: list


def parsed(path):
    """The places and the rows of a table: (kind, variant, [[lines that go, lines that come], ...])."""
    table, wrong = Table({}, []), f"{path.name}: expected `place`, `==`, `-` or `+` at the beginning, not "
    for line in path.read_text().splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "place":
            name, _, text = rest.partition(": ")
            table.places.setdefault(name, []).append(text)
        elif mark == "==":
            kind, _, variant = rest.partition(": ")
            if kind not in KINDS:
                raise ValueError(f"{path.name}: no kind of fault is {kind!r}; fault_kinds.py has them")
            table.rows.append((kind, variant, []))
        elif mark == "-":
            pairs = table.rows[-1][2]
            if not pairs or pairs[-1][1]:
                pairs.append(([], []))
            pairs[-1][0].append(rest)
        elif mark == "+":
            table.rows[-1][2][-1][1].append(rest)
        elif line and mark != "#":
            raise ValueError(wrong + repr(line))
    return table


def replaced(text, pairs, where):
    """(text, the numbers of the lines that were changed) after all pairs."""
    marked = text
    for number, (gone, come) in enumerate(pairs):
        gone, come = "\n".join(gone), "\n".join(come)
        count = marked.count(gone)
        if count != 1:
            raise ValueError(f"{where}: the text to replace is there {count} times, expected once: {gone!r}")
        # What a pair brings is kept between marks, until the lines that it lies on are known.
        marked = marked.replace(gone, f"\0{come}\1")
    changed, inside = set(), False
    for number, line in enumerate(marked.split("\n"), 1):
        if inside or "\0" in line:
            changed.add(number)
        inside = line.rfind("\0") > line.rfind("\1") or inside and "\1" not in line
    return marked.replace("\0", "").replace("\1", ""), changed


def of_base(base):
    """The healthy program and all that are seeded from it."""
    healthy = (FOLDER / "bases" / f"{base}.py").read_text()
    path = FOLDER / "faults" / f"{base}.faults"
    table = parsed(path)
    for name, texts in table.places.items():
        for text in texts:
            if text not in healthy:
                raise ValueError(f"{path.name}: the place {name} is nowhere: {text!r}")
    programs = [Seeded(f"{base}/healthy", base, None, healthy, frozenset())]
    for kind, variant, pairs in table.rows:
        name = f"{base}/{kind}" + (f".{variant}" if variant else "")
        text, changed = replaced(healthy, pairs, f"{path.name}, {name}")
        wanted = [one for place in KINDS[kind].places for one in table.places.get(place, ())]
        named = {number for number, line in enumerate(text.split("\n"), 1) if any(one in line for one in wanted)}
        programs.append(Seeded(name, base, kind, text, frozenset(changed | named)))
    names = [one.name for one in programs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path.name}: two rows have one name: {', '.join(twice)}")
    return programs


def programs(bases=BASES):
    return [one for base in bases for one in of_base(base)]
