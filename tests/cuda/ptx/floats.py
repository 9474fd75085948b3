"""The instructions of translate.py that compute with floating-point numbers. Registers have their bits (floats.h)."""
import re

from unknown import Unknown

KINDS = ("f16", "f32", "f64")
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
ORDERED = {"eq": "x == y", "ne": "x < y || x > y", "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y",
           "num": "x == x && y == y", "equ": "!(x < y || x > y)", "neu": "x != y", "ltu": "!(x >= y)",
           "leu": "!(x > y)", "gtu": "!(x <= y)", "geu": "!(x < y)", "nan": "x != x || y != y"}
MOVES = ("mov", "ld", "st", "selp")  # bits are moved as those of integers are


def statement(kernel, name, parts, kind, a):
    """The C++ of an instruction; empty for one that computes with no such number."""
    if kind not in KINDS and not any(re.fullmatch(r"e?[a-z]*f\d+(x\d+)?", part) for part in parts):
        return ""
    if name in MOVES and kind in KINDS:
        return ""
    values = [f"value_of({kernel.value(one, kind)})" for one in a[1:]]
    target, bits = kernel.register(a[0]), "bits_of<uint{}_t>({})".format
    width = kind[1:]
    if name in ("add", "sub", "mul") and parts in ([], ["rn"]) or name == "div" and parts == ["rn"] and kind != "f16":
        return f"{target} = {bits(width, f'{values[0]} {INFIX[name]} {values[1]}')};"
    if name == "fma" and parts == ["rn"]:
        return f"{target} = fused({', '.join(kernel.value(one, kind) for one in a[1:4])});"
    if name in ("min", "max") and not parts:
        order = "smaller" if name == "min" else "larger"
        return f"{target} = {order}({kernel.value(a[1], kind)}, {kernel.value(a[2], kind)});"
    if name == "neg" and not parts:
        return f"{target} = {kernel.value(a[1], kind)} ^ sign_of<uint{width}_t>;"
    if name == "abs" and not parts:
        return f"{target} = {kernel.value(a[1], kind)} & ~sign_of<uint{width}_t>;"
    if name == "sqrt" and parts == ["rn"] and kind != "f16":
        return f"{target} = {bits(width, f'std::sqrt({values[0]})')};"
    if name == "rcp" and parts == ["approx", "ftz"] and kind == "f32":
        return f"{target} = reciprocal({kernel.value(a[1], kind)});"
    if name == "setp" and len(parts) == 1 and parts[0] in ORDERED:
        return f"{{ const auto x = {values[0]}, y = {values[1]}; {target} = {ORDERED[parts[0]]}; }}"
    if name == "cvt" and kind in KINDS and parts[-1] in KINDS:
        narrower = int(parts[-1][1:]) < int(width)
        if parts[:-1] == (["rn"] if narrower else []) and parts[-1] != kind:
            return f"{target} = {bits(parts[-1][1:], values[0])};"
    raise Unknown("instruction on floating-point numbers")
