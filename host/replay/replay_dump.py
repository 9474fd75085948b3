"""`numsan replay DUMP`: runs a dumped operator again, says what that shows, tries help, writes a program.

The command starts this file with a Python that has torch. Exit status: 0 reproduced, 1 not reproduced, 2 error.
"""
import argparse
import os
import sys
import tempfile
import warnings

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # read as torch is loaded, which warns of dumped calls

import replay_document  # noqa: E402
from dump_file import read_dump  # noqa: E402
from help_trial import HelpTrial  # noqa: E402
from op_calls import CannotRun  # noqa: E402
from op_runs import Replay  # noqa: E402
from safetensors_file import DumpError  # noqa: E402
from script_writer import ScriptWriter  # noqa: E402
from verdicts import Verdict  # noqa: E402

REPRODUCED, NOT_REPRODUCED, ERROR = 0, 1, 2


def complain(text):
    print(f"numsan: {replay_document.clean(text, 2000)}", file=sys.stderr)
    return ERROR


def write_whole(path, text):
    """Writes a file that is there as a whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".numsan-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def arguments(words):
    parser = argparse.ArgumentParser(prog="numsan replay")
    parser.add_argument("dump")
    parser.add_argument("--try", dest="trials", action="store_true")
    parser.add_argument("--script", default="")
    parser.add_argument("--format", default="text", choices=("text", "json"))
    parser.add_argument("--output", default="")
    return parser.parse_args(words)


def replay(options):
    replayed = Replay(read_dump(options.dump))
    verdict = Verdict(replayed)
    judged = HelpTrial(replayed).judge_all() if options.trials else None
    if options.script:
        near = os.path.dirname(os.path.abspath(options.script))
        write_whole(options.script, ScriptWriter(replayed, near).text())
    show = replay_document.json_text if options.format == "json" else replay_document.text
    document = show(replayed, verdict, judged, options.script)
    if options.output:
        write_whole(options.output, document)
    else:
        sys.stdout.write(document)
        sys.stdout.flush()
    return REPRODUCED if verdict.reproduced else NOT_REPRODUCED


def main(words):
    warnings.simplefilter("ignore")  # torch warns of what a dump asks for on purpose
    options = arguments(words)
    try:
        return replay(options)
    except DumpError as error:
        return complain(str(error))
    except CannotRun as error:
        return complain(f"{options.dump}: {error}")
    except OSError as error:
        return complain(f"{error.filename or options.dump}: {error.strerror or error}")
    except MemoryError:
        return complain(f"{options.dump}: there is not enough memory to run it")
    except Exception as error:  # whatever a dump makes torch throw is no answer to whether it was reproduced
        return complain(f"{options.dump}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
