"""Runs one function of tests/archetypes/programs as a program: one_case.py FILE FUNCTION"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "archetypes"))
import run_cases  # noqa: E402

if __name__ == "__main__":
    [(_, function, _)] = run_cases.functions([":".join(sys.argv[1:])])
    run_cases.run(function, pathlib.Path("finite"), whole=True)
