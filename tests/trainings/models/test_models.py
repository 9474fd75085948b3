"""Healthy trainings of models that libraries have: silence and the same bits."""
import os
import pathlib

import pytest

import run_numsan

PROGRAMS = sorted(path for path in pathlib.Path(__file__).with_name("programs").glob("*.py") if path.stem != "loop")
STEPS = 200 if "NUMSAN_TEST_ALL" in os.environ else 40
# Programs whose loop is that of loop.py run in any of these; each in one of them in CI, in the others at night.
TYPES = ["float32", "bfloat16", "float16"]
OWN_LOOP = ["gaussian_process", "variational"]
# Of these transformers, which takes most of their time to import, is imported once.
OF_TRANSFORMERS = {"detection", "diffusion", "preferences", "speech", "speech_pretraining", "state_space",
                   "text_to_text", "trainer", "transcription"}
IN_CI = {"transcription": "bfloat16", "diffusion": "float16", "speech": "float16", "text_to_text": "bfloat16",
         "preferences": "float16", "masked_attention": "bfloat16"}


def trainings():
    for path in PROGRAMS:
        for kind in ["float32"] if path.stem in OWN_LOOP else TYPES:
            marks = [] if kind == IN_CI.get(path.stem, "float32") else [pytest.mark.nightly]
            if path.stem in OF_TRANSFORMERS:
                marks.append(pytest.mark.xdist_group("transformers"))
            yield pytest.param(path, kind, id=f"{path.stem}-{kind}", marks=marks)


@pytest.mark.parametrize("program, kind", trainings())
def test_healthy_training_is_met_with_silence(program, kind, warm, tmp_path):
    args = [STEPS] if program.stem in OWN_LOOP else [STEPS, "--autocast", kind]
    modules = run_numsan.TRANSFORMERS if program.stem in OF_TRANSFORMERS else []
    plain = run_numsan.run_forked(program, args=args, cwd=tmp_path, modules=modules)
    watched = run_numsan.run_watched_fork(program, args=args, cwd=tmp_path, clean=True, modules=modules)
    assert watched.returncode == plain.returncode == 0, plain.describe()
    assert "nan" not in plain.stdout and "inf" not in plain.stdout, f"it is not healthy\n{plain.describe()}"
    assert watched.findings == [] and watched.report["run"]["steps"] > 0, watched.describe()
    assert watched.stdout == plain.stdout, f"{watched.describe()}\n--- without numsan\n{plain.stdout}"
    assert "numsan" not in watched.stderr and "[NS" not in watched.stderr, watched.describe()
