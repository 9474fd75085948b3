"""Reads host/ops/operators.def: one row for all names of an operator."""
import pathlib
import re
from dataclasses import dataclass

TABLE = pathlib.Path(__file__).resolve().parents[2] / "host" / "ops" / "operators.def"


class TableChanged(Exception):
    """The table is not written as this module reads it."""


@dataclass(frozen=True)
class Row:
    """The names of an operator and the fields of its row, as text: {'form': 'Log', 'roles': 'kLayer | kReduces'}."""
    names: tuple
    fields: dict

    @property
    def roles(self):
        return set(self.fields.get("roles", "").split(" | ")) - {""}


def rows(path=TABLE):
    """The rows of the table, in its order."""
    text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    found = []
    for macro in re.findall(r"NUMSAN_OPERATOR\((.*?)\)\s*(?=NUMSAN_OPERATOR|\Z)", text, re.DOTALL):
        names = " ".join(re.findall(r'"([^"]*)"', macro)).split()
        fields = dict(re.findall(r"\.(\w+) = ([^,]+?)\s*(?:,|$)", re.sub(r"\s+", " ", macro.split('"')[-1])))
        if not names or not fields:
            raise TableChanged(f"{path}: a row without names or fields: {macro[:80]!r}")
        found.append(Row(tuple(names), fields))
    if len(found) != text.count("NUMSAN_OPERATOR("):
        raise TableChanged(f"{path}: {text.count('NUMSAN_OPERATOR(')} rows, of which {len(found)} can be read")
    return found


def by_name(path=TABLE):
    """{plain name: its row}"""
    return {name: row for row in rows(path) for name in row.names}


def plain(name):
    """`aten::_foreach_add_` is `add` in the table, as plain_op_name (host/ops/op_traits.h) has it."""
    name = name.rpartition("::")[2].partition(".")[0].removeprefix("_foreach_")
    return name if name.startswith("__") else name.rstrip("_")


def listed_class(name, table):
    """The class that the table gives an operator by its full name, None where its schema decides; as listed_class
    (host/ops/op_table.h) has it."""
    row = table.get(plain(name))
    if row is None or not name.startswith("aten::"):
        return None
    listed = row.fields.get("in_place" if name.endswith("_") and plain(name) != name[6:] else "op_class")
    return None if "_foreach_" in name and listed != "Overwriting" else listed
