"""Reads numsan's tables (*.def) as rows of Python: NUMSAN_ADVICE("text", .op = "log sqrt", .enough = true)."""
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
TOKEN = re.compile(r'\s*(?://[^\n]*)?(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_.]\w*)|(.))?', re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t"}


def table_path(name):
    """The table beside these files, as it is installed, or in the sources: host/cause, host/finding."""
    places = [HERE / name, *(HERE.parent / folder / name for folder in ("cause", "finding"))]
    return next(place for place in places if place.exists())


def _tokens(text):
    for match in TOKEN.finditer(text):
        if match.group(1) is not None:
            yield "text", re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), match.group(1))
        elif match.group(2) is not None:
            yield "word", match.group(2)
        elif match.group(3) and not match.group(3).isspace():
            yield "mark", match.group(3)


def rows(name, macro):
    """Rows of a table as (values without a name, {field: value}); strings that follow each other are one."""
    tokens, found = list(_tokens(table_path(name).read_text())), []
    at = 0
    while at < len(tokens):
        if tokens[at] != ("word", macro) or tokens[at + 1] != ("mark", "("):
            at += 1
            continue
        at += 2
        values, fields, field, value = [], {}, None, None
        while True:
            kind, token = tokens[at]
            at += 1
            if kind == "mark" and token in ",)":
                if field is None:
                    values.append(value)
                else:
                    fields[field] = value
                field, value = None, None
                if token == ")":
                    break
            elif kind == "word" and token.startswith("."):
                field = token[1:]
            elif kind == "text":
                value = token if value is None else value + token
            elif kind == "word":
                value = {"true": True, "false": False}.get(token, token)
        found.append((values, fields))
    return found


def mechanisms():
    """{id: (code, name)} of mechanisms.def."""
    return {values[1]: (values[0], values[2]) for values, _ in rows("mechanisms.def", "NUMSAN_MECHANISM")}


def advice():
    """[(sentence with {holes}, fields)] of advice.def."""
    return [(values[0], fields) for values, fields in rows("advice.def", "NUMSAN_ADVICE")]
