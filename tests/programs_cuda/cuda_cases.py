"""What numsan has to say of the programs in this folder: what each is given, and what is found then."""
import pathlib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass
class Case:
    program: str
    argument: str  # what the program is given
    kind: str  # inf or nan
    op: str
    kernel: str  # with the types of its parameters; empty: one of a library's
    launch: int  # which of those of the program, from 1
    marked: str = "// BUG"  # what the line has in it that is to be named
    function: str = "main"  # the one with that line, and what the report's name of it has in it
    escaped: str = "host"

    @property
    def source(self):
        return HERE / f"{self.program}.cu"

    @property
    def line(self):
        lines = self.source.read_text().splitlines()
        [found] = [number for number, line in enumerate(lines, 1) if self.marked in line]
        return found

    def differs(self, report, numbered=True):
        """What is not as it should be in a run's report; empty: nothing. `numbered`: the launch's number counts."""
        findings = report["findings"]
        if len(findings) != 1:
            return f"{len(findings)} findings, expected 1"
        found = findings[0]
        place = found.get("location") or {"file": "", "line": 0}
        seen = {"kind": found["kind"], "op": found["op"], "file": pathlib.Path(place["file"]).name,
                "line": place["line"], "severity": found.get("severity"),
                "escaped": (found.get("escape") or {}).get("into")}
        wanted = {"kind": self.kind, "op": self.op, "file": self.source.name, "line": self.line,
                  "severity": "warning", "escaped": self.escaped}
        if numbered:
            launches = found.get("launches") or [{}]
            seen["launch"], wanted["launch"] = launches[-1].get("number"), self.launch
        if self.kernel:
            seen["kernel"], wanted["kernel"] = found.get("kernel"), self.kernel
        return "; ".join(f"{key} is {seen[key]}, expected {wanted[key]}" for key in seen if seen[key] != wanted[key])


BLOCKS = "reduce::blocks<128, __half, reduce::Plus>"
CASES = {
    "mlp": Case("mlp", "10", "inf", "cublasSgemm()", "", 96),
    "stencil": Case("stencil", "0", "inf", "heat::diffuse<double><<<>>>",
                    "void heat::diffuse<double>(double*, double const*, double const*, double, int, int)", 1),
    "reduction": Case("reduction", "16", "inf", f"{BLOCKS}<<<>>>",
                      f"void {BLOCKS}(__half const*, __half*, int, __half, reduce::Plus)", 3),
    "scaled": Case("reduction", "1e6", "inf", "scale<<<>>>", "scale(__half*, float, int)", 1, "factor beyond float16"),
    "roots": Case("roots", "1e25", "nan", "roots::improve<<<>>>", "roots::improve(float*, float const*, int)", 2,
                  function="improve"),
    "by_pointer": Case("roots", "1e37", "inf", "roots::scale<<<>>>", "roots::scale(float*, float, int)", 1,
                       "// by a pointer", "launch"),
    # Of its struct debug information knows what it points to.
    "optimizer": Case("optimizer", "0", "nan", "adam_step<<<>>>", "adam_step", 2),
}
HEALTHY = {"mlp": "1", "stencil": "0.5", "reduction": "1", "roots": "1", "optimizer": "1e-8"}
