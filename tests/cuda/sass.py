"""What the compiled scan kernels are made of, as cuobjdump tells it."""

import re
import subprocess
from dataclasses import dataclass

RESOURCE = re.compile(r"(\w+(?:\[\d\])?):(\d+)")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9_.a-z]*)(.*?);")


def cuobjdump(tool, *arguments):
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout


def resources(tool, fatbin):
    """[(architecture, function, {resource: amount})] of every kernel in the file."""
    rows, architecture, function = [], None, None
    for line in cuobjdump(tool, "--dump-resource-usage", fatbin).splitlines():
        if match := re.match(r"arch = (\w+)", line):
            architecture = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            function = match[1]
        elif function and "REG:" in line:
            rows.append((architecture, function, {k: int(v) for k, v in RESOURCE.findall(line)}))
            function = None
    return rows


@dataclass
class Loop:
    """An innermost loop: the mnemonics between its first instruction and the branch back."""

    opcodes: list

    @property
    def packets(self):
        return sum(1 for op in self.opcodes if re.match(r"LDG\..*128", op))

    @property
    def operation(self):
        """The commonest minimum or maximum: it tells the element types apart."""
        extremes = [op for op in self.opcodes if "MNMX" in op]
        return max(set(extremes), key=extremes.count) if extremes else "compare and select"


def packet_loops(tool, fatbin, architecture, function):
    """Innermost loops of `function` that load packets of 16 bytes."""
    listing = cuobjdump(tool, "-sass", "-arch", architecture, "-fun", function, fatbin)
    code = []
    for line in listing.splitlines():
        if match := INSTRUCTION.match(line):
            code.append((int(match[1], 16), match[2], match[3]))
    spans = []
    for address, op, operands in code:
        target = re.search(r"\b0x([0-9a-f]+)", operands) if op.startswith("BRA") else None
        if target and int(target[1], 16) < address:
            spans.append((int(target[1], 16), address))
    loops = []
    for begin, end in spans:
        if any(b >= begin and e <= end and (b, e) != (begin, end) for b, e in spans):
            continue
        loop = Loop([op for address, op, _ in code if begin <= address <= end])
        if loop.packets:
            loops.append(loop)
    return loops
