#!/usr/bin/env python3
"""Translates PTX to C++: a function for each kernel, a statement for each instruction, over the threads of machine.h.

usage: translate.py KERNELS.ptx OUT.cpp --namespace NAME [--count]

Knows the instructions that nvcc makes of the scan kernels and of the programs in tests/programs_cuda, by the PTX ISA's
description of them. At any other it stops and names the line. With --count NAME_executed[LINE] is how often threads got
to the instruction of a line, whether its predicate held or not, and NAME_lines how many there are.
"""
import argparse
import pathlib
import re
import sys

import floats
from unknown import Unknown

REGISTERS = {"p": "P", "rs": "S", "r": "R", "rd": "D", "f": "F", "fd": "G"}  # by the names that nvcc gives them
POISON = {"P": "false", "S": "0xA5A5", "R": "0xA5A5A5A5u", "D": "0xA5A5A5A5A5A5A5A5ull", "F": "0xA5A5A5A5u",
          "G": "0xA5A5A5A5A5A5A5A5ull"}
WIDTH = {"P": "bool", "S": "uint16_t", "R": "uint32_t", "D": "uint64_t", "F": "uint32_t", "G": "uint64_t"}
SPECIAL = {"%laneid": "t.lane()", "%globaltimer": "t.nanoseconds()", "WARP_SZ": "32u"}
POSITION = {"tid": "thread_in_block", "ntid": "threads", "ctaid": "block_in_grid", "nctaid": "blocks"}
INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
HINTS = ("L1::no_allocate", "cg", "nc")  # of caches: no value depends on them


def ctype(kind):
    """The C++ type of a PTX type; of a floating-point number its bits."""
    if kind == "pred":
        return "bool"
    if kind in floats.KINDS:
        return f"uint{kind[1:]}_t"
    if not re.fullmatch(r"[usb](8|16|32|64)", kind):
        raise Unknown(f"type '{kind}'")
    return ("int" if kind[0] == "s" else "uint") + kind[1:] + "_t"


def unsigned(kind):
    return kind if kind == "pred" else "u" + kind[1:]


class Kernel:
    """One `.entry`."""

    count = ""  # the namespace, if what is executed is counted

    def __init__(self, name, parameters, body, first_line):
        self.name, self.first_line = name, first_line
        self.parameters, self.parameter_bytes = laid_out(parameters)
        shared = re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];", body)
        self.shared, self.shared_bytes = laid_out([(one, int(size), int(align)) for align, one, size in shared])
        self.body = body
        self.used = set()
        self.scoped = set()  # registers of inline assembly
        self.line = 0

    # Operands.

    def register(self, text):
        if text in self.scoped:
            return text.replace("$", "_")
        match = re.fullmatch(r"%(rs|rd|r|p|fd|f)(\d+)", text)
        if match is None or match[1] not in REGISTERS:
            raise Unknown(f"register '{text}'")
        self.used.add((REGISTERS[match[1]], int(match[2])))
        return REGISTERS[match[1]] + match[2]

    def value(self, text, kind=None):
        """An operand, as of type `kind`."""
        if text.startswith("!"):
            shown = f"!{self.register(text[1:])}"
        elif text in SPECIAL:
            shown = SPECIAL[text]
        elif match := re.fullmatch(r"%(n?tid|n?ctaid)\.([xyz])", text):
            shown = f"t.{POSITION[match[1]]}().{match[2]}"
        elif text.startswith("%") or text in self.scoped:
            shown = self.register(text)
        elif match := re.fullmatch(r"0[fF]([0-9A-Fa-f]{8})|0[dD]([0-9A-Fa-f]{16})", text):
            shown = f"0x{match[1] or match[2]}ull"  # of a number the bits
        elif re.fullmatch(r"-?\d+|0[xX][0-9A-Fa-f]+", text):
            shown = f"{int(text, 0) & (1 << 64) - 1:#x}ull"
        elif text in self.shared:
            shown = f"{self.shared[text][0]}u"  # addresses of shared memory begin at 0
        elif text in self.parameters:
            shown = f"t.parameters() + {self.parameters[text][0]}"
        else:
            raise Unknown(f"operand '{text}'")
        return f"{ctype(kind)}({shown})" if kind else shown

    def address(self, text):
        match = re.fullmatch(r"\[([%\w]+)(?:\+(-?\d+))?\]", text)
        if match is None:
            raise Unknown(f"address '{text}'")
        return f"{self.value(match[1])} + int64_t({match[2] or 0})"

    # Instructions: (what stands between the dots, its type, operands) -> statement.

    def infix(self, name, parts, kind, a):
        if parts:
            raise Unknown("modifier")
        if kind == "u16x2":
            return f"{self.register(a[0])} = each_half({self.value(a[1])}, {self.value(a[2])}, " \
                   f"[](uint16_t x, uint16_t y) {{ return uint16_t(x {INFIX[name]} y); }});"
        plain = unsigned(kind)
        return f"{self.register(a[0])} = {ctype(plain)}({self.value(a[1], plain)} {INFIX[name]} " \
               f"{self.value(a[2], plain)});"

    def extreme(self, name, parts, kind, a):
        order = "<" if name == "min" else ">"
        if kind == "u16x2":
            return f"{self.register(a[0])} = each_half({self.value(a[1])}, {self.value(a[2])}, " \
                   f"[](uint16_t x, uint16_t y) {{ return x {order} y ? x : y; }});"
        x, y = self.value(a[1], kind), self.value(a[2], kind)
        return f"{self.register(a[0])} = {x} {order} {y} ? {x} : {y};"

    def multiply(self, parts, kind, a):
        if parts == ["wide"]:
            wide = kind[0] + str(2 * int(kind[1:]))
            return f"{self.register(a[0])} = {ctype(wide)}({self.value(a[1], kind)}) * " \
                   f"{ctype(wide)}({self.value(a[2], kind)});"
        if parts == ["hi"] and kind == "u64":
            return f"{self.register(a[0])} = uint64_t(static_cast<unsigned __int128>({self.value(a[1], kind)}) * " \
                   f"{self.value(a[2], kind)} >> 64);"
        if parts != ["lo"]:
            raise Unknown("part of a product")
        return self.infix("mul", [], kind, a)

    def divide(self, name, kind, a):
        divisor = self.value(a[2], kind)
        return f"if ({divisor} == 0) t.fault({self.line}, \"division by zero\"); " \
               f"{self.register(a[0])} = {self.value(a[1], kind)} {'/' if name == 'div' else '%'} {divisor};"

    def move(self, kind, a):
        if a[0].startswith("{"):  # a register into its parts
            parts = [self.register(one.strip()) for one in a[0][1:-1].split(",")]
            bits = int(kind[1:]) // len(parts)
            taken = " ".join(f"{one} = uint{bits}_t(whole >> {i * bits});" for i, one in enumerate(parts))
            return f"{{ const uint64_t whole = {self.value(a[1], kind)}; {taken} }}"
        if a[1].startswith("{"):
            parts = [self.value(one.strip()) for one in a[1][1:-1].split(",")]
            bits = int(kind[1:]) // len(parts)
            return f"{self.register(a[0])} = " + " | ".join(
                f"{ctype(kind)}(uint{bits}_t({one})) << {i * bits}" for i, one in enumerate(parts)) + ";"
        shown = f"{self.value(a[1])} != 0" if kind == "pred" else self.value(a[1], kind)
        return f"{self.register(a[0])} = {shown};"

    def access(self, name, parts, kind, a):
        """ld and st."""
        volatile = "volatile" in parts
        parts = [part for part in parts if part != "volatile" and part not in HINTS]
        space, count = parts[0], int(parts[1][1:]) if len(parts) == 2 else 1
        if space not in ("global", "shared", "param") or len(parts) > 2:
            raise Unknown("kind of memory")
        where, what = (a[1], a[0]) if name == "ld" else (a[0], a[1])
        values = [one.strip() for one in what.strip("{}").split(",")]
        before = "t.let_others(); " if volatile and space == "global" else ""
        if volatile and space == "shared" and count == 1:  # as strong as a relaxed atomic access
            at = f"t.atomic_shared<{ctype(kind)}>({self.address(where)}, {self.line})"
        else:
            at = f"t.{'load' if name == 'ld' else 'store'}_{space}<{ctype(kind)}, {count}>" \
                 f"({self.address(where)}, {self.line})"
        moved = " ".join(f"{self.register(one)} = at[{i}];" if name == "ld" else f"at[{i}] = {self.value(one, kind)};"
                         for i, one in enumerate(values))
        return f"{{ {before}auto* at = {at}; {moved} }}"

    def atomic(self, parts, kind, a):
        space, what = parts
        operand = self.value(a[2], kind)
        new = {"add": f"old + {operand}", "or": f"old | {operand}", "max": f"old > {operand} ? old : {operand}",
               "min": f"old < {operand} ? old : {operand}",
               "cas": f"old == {operand} ? {self.value(a[3], kind) if len(a) > 3 else 0} : old"}
        if space not in ("global", "shared") or what not in new:
            raise Unknown("atomic operation")
        return f"{{ t.let_others(); auto* at = t.atomic_{space}<{ctype(kind)}>({self.address(a[1])}, {self.line}); " \
               f"{self.register(a[0])} = " \
               f"exchange(at, [&]({ctype(kind)} old) {{ return {ctype(kind)}({new[what]}); }}); }}"

    def shuffle(self, parts, kind, a):
        if parts[0] != "sync" or parts[1] not in ("up", "down", "bfly", "idx") or kind != "b32":
            raise Unknown("shuffle")
        target, _, valid = a[0].partition("|")
        if valid and len(re.findall(re.escape(valid) + r"\b", self.body)) > 1:
            raise Unknown("use of whether a shuffle's source was there")
        lane, clamp, mask = (self.value(one, "u32") for one in a[2:5])
        return f"{self.register(target)} = t.shuffle(Shuffle::{parts[1].capitalize()}, {self.value(a[1], 'u32')}, " \
               f"{lane}, {clamp}, {mask}, {self.line});"

    def statement(self, name, parts, kind, a):
        made = floats.statement(self, name, parts, kind, a)
        if made:
            return made
        if name == "bra":
            return f"goto {a[0].replace('$', '')};"
        if name == "ret":
            return "return;"
        if name == "bar" and parts + [kind] == ["sync"] and a == ["0"]:
            return f"t.barrier({self.line});"
        if name in ("membar", "fence"):
            return "t.let_others();"
        if name in ("add", "sub", "and", "or", "xor"):
            return self.infix(name, parts, kind, a)
        if name in ("min", "max") and not parts:
            return self.extreme(name, parts, kind, a)
        if name == "mul":
            return self.multiply(parts, kind, a)
        if name == "mad" and parts == ["lo"]:
            plain = unsigned(kind)
            return f"{self.register(a[0])} = {ctype(plain)}({self.value(a[1], plain)} * {self.value(a[2], plain)} + " \
                   f"{self.value(a[3], plain)});"
        if name in ("div", "rem") and not parts:
            return self.divide(name, kind, a)
        if name == "neg":
            return f"{self.register(a[0])} = {ctype(unsigned(kind))}(0 - {self.value(a[1], unsigned(kind))});"
        if name == "clz" and kind in ("b32", "b64"):
            return f"{self.register(a[0])} = uint32_t(std::countl_zero({self.value(a[1], kind)}));"
        if name == "not":
            return f"{self.register(a[0])} = {'!' if kind == 'pred' else '~'}{self.value(a[1], kind)};"
        if name in ("shl", "shr"):
            shifted = self.value(a[1], unsigned(kind) if name == "shl" else kind)
            return f"{self.register(a[0])} = shift_{'left' if name == 'shl' else 'right'}({shifted}, " \
                   f"{self.value(a[2], 'u32')});"
        if name == "selp" and not parts:
            return f"{self.register(a[0])} = {self.value(a[3])} ? {self.value(a[1], kind)} : {self.value(a[2], kind)};"
        if name == "setp" and len(parts) == 1 and parts[0] in COMPARE:
            return f"{self.register(a[0])} = {self.value(a[1], kind)} {COMPARE[parts[0]]} {self.value(a[2], kind)};"
        if name == "mov" and not parts:
            return self.move(kind, a)
        if name == "cvta" and parts == ["to", "global"]:
            return f"{self.register(a[0])} = {self.value(a[1])};"
        if name == "cvt" and len(parts) == 1:
            return f"{self.register(a[0])} = {ctype(parts[0])}({self.value(a[1], kind)});"
        if name == "bfi" and not parts:
            bits = ", ".join(self.value(one, "u32") for one in a[3:5])
            return f"{self.register(a[0])} = insert_bits({self.value(a[1], kind)}, {self.value(a[2], kind)}, {bits});"
        if name == "prmt" and not parts:
            return f"{self.register(a[0])} = permute_bytes({', '.join(self.value(one, 'u32') for one in a[1:4])});"
        if name == "shfl":
            return self.shuffle(parts, kind, a)
        if name in ("ld", "st"):
            return self.access(name, parts, kind, a)
        if name == "atom":
            return self.atomic(parts, kind, a)
        raise Unknown("instruction")

    def translated_line(self, line):
        """The C++ of one line; empty for a directive. A block of inline assembly may go over several lines."""
        line = re.sub(r"//.*", "", line).strip()
        begin = end = ""
        if line.startswith("{"):
            begin, line = "{ ", line[1:].strip()
        if line == "}" or re.search(r";\s*\}$", line):
            end, line = " }", line[:-1].strip()
        if label := re.fullmatch(r"\$?(\w+):", line):
            return f"{label[1]}:;"
        if not begin and line.startswith("."):
            return ""
        if line and not line.endswith(";"):
            raise Unknown("line")
        return begin + " ".join(self.instruction(one.strip()) for one in line.split(";")[:-1]) + end

    def instruction(self, line):
        """Of one that a semicolon ends, without it."""
        if declared := re.fullmatch(r"\.reg \.(\w+)\s+(.*)", line):
            names = [one.strip() for one in declared[2].split(",")]
            self.scoped.update(names)
            return f"{ctype(declared[1])} " + ", ".join(f"{self.register(one)} = 0" for one in names) + ";"
        match = re.fullmatch(r"(?:@(!?)(%p\d+)\s+)?([\w.:]+)(?:\s+(.*?))?", line)
        if match is None:
            raise Unknown("line")
        name, *parts, kind = match[3].split(".") if "." in match[3] else [match[3], ""]
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", match[4] or "")
        made = self.statement(name, parts, kind, [one.strip() for one in operands])
        if match[2]:
            made = f"if ({match[1]}{self.register(match[2])}) {{ {made} }}"
        return (f"++{self.count}_executed[{self.line}]; " if self.count else "") + made

    def translated(self):
        """Lines of C++."""
        made = []
        for number, line in enumerate(self.body.split("\n"), self.first_line):
            self.line = number
            try:
                made.append(self.translated_line(line))
            except (Unknown, KeyError, IndexError, ValueError) as error:
                raise Unknown(f"line {number}: not known to translate.py, {error}: {line.strip()}") from error
        declared = []
        for letter, kind in WIDTH.items():
            names = sorted(number for of, number in self.used if of == letter)
            if names:
                declared.append(f"{kind} " + ", ".join(f"{letter}{n} = {POISON[letter]}" for n in names) + ";")
        return [f"static void {self.name}(Thread& t) {{", *declared, *filter(None, made), "}"]

    def row(self):
        """Of the table of kernels, as machine.h has it."""
        parameters = ", ".join(f"{{{offset}, {size}}}" for offset, size in self.parameters.values())
        return f'{{"{self.name}", &{self.name}, {self.parameter_bytes}, {self.shared_bytes}, {{{parameters}}}}}'


def laid_out(variables):
    """{name: (offset, bytes)} of (name, bytes, alignment) each, one after the other, and how many bytes that takes."""
    offsets, end = {}, 0
    for name, size, align in variables:
        begin = (end + align - 1) // align * align
        offsets[name], end = (begin, size), begin + size
    return offsets, end


def parameters_of(text):
    for one in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"\.param (?:\.align (\d+) )?\.([a-z]+)(\d+) (\w+)(?:\[(\d+)\])?", one)
        if match is None:
            raise Unknown(f"parameter '{one}'")
        width = int(match[3]) // 8
        yield match[4], width * int(match[5] or 1), int(match[1] or width)


def kernels_of(text):
    for match in re.finditer(r"^(?:\.visible )?\.entry (\w+)\(([^)]*)\)[^{]*^\{", text, re.M):
        depth, end = 1, match.end()
        while depth > 0:  # inline assembly has braces, too
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        first_line = text[:match.end()].count("\n") + 1
        yield Kernel(match[1], parameters_of(match[2]), text[match.end():end - 1], first_line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ptx", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--count", action="store_true")
    chosen = parser.parse_args()
    Kernel.count = chosen.namespace if chosen.count else ""
    try:
        text = chosen.ptx.read_text()
        kernels = list(kernels_of(text))
        functions = [line for kernel in kernels for line in kernel.translated()]
    except Unknown as error:
        sys.exit(f"{chosen.ptx}: {error}")
    if not kernels:
        sys.exit(f"{chosen.ptx}: no kernel in it")
    table = ", ".join(one.row() for one in kernels)
    counted = text.count("\n") + 2  # lines, from 1 on
    counts = [f'extern "C" {{ uint64_t {chosen.namespace}_executed[{counted}]; '
              f'extern const size_t {chosen.namespace}_lines = {counted}; }}'] if chosen.count else []
    chosen.out.write_text("\n".join(
        [f"// Made by translate.py of {chosen.ptx.name}.", '#include "tests/cuda/ptx/floats.h"',
         '#include "tests/cuda/ptx/machine.h"', *counts,
         "namespace numsan::ptx {", *functions, f"namespace {chosen.namespace} {{",
         f"extern const std::vector<Kernel> kernels = {{{table}}};", "}", "}",
         "// of a library that takes the place of the kernels in the tests",
         f'extern "C" const void* {chosen.namespace}_kernels() {{ return &numsan::ptx::{chosen.namespace}::kernels; }}',
         ""]))


if __name__ == "__main__":
    main()
