# Stops in the debugger that breakpoint() names, in the frame of the line that made a bad value; or raises what says so.
# Runs inside an operator, or between two bytecodes of the main thread, in the namespace of stopped.py. `core_pause` is
# there already: see interpose/python/debugger.cpp.
import sys


def goes_on(debugger):
    """Whether its user has let the program go on, and nothing is left to stop at."""
    return debugger.stopframe is debugger.botframe and debugger.stoplineno == -1 and not debugger.breaks


def collective_timeout():
    """Seconds that the other ranks wait for this one in a collective; None: there are no others."""
    group = sys.modules.get('torch.distributed')
    if group is None or not group.is_available() or not group.is_initialized() or group.get_world_size() < 2:
        return None
    import torch
    world = group.distributed_c10d._get_default_group()
    try:
        return int(world._get_backend(torch.device('cpu')).options._timeout.total_seconds())
    except (AttributeError, RuntimeError):
        return int(group.constants.default_pg_timeout.total_seconds())


def say(*lines):
    print(*lines, sep='\n', file=sys.stderr, flush=True)


class Terminal:
    """The terminal, while no debugger of another process has it. False: it was not free in time."""

    LIMIT = 1800  # seconds; as long as ranks wait in a collective, where that is not said

    def __enter__(self):
        import fcntl
        import os
        import time
        self.file = None
        try:
            self.file = os.open(os.ttyname(0), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        except OSError:
            return True  # no terminal, or none that can be had for one process
        limit = collective_timeout() or self.LIMIT
        say(f'numsan: process {os.getpid()} stops, too, and waits for the terminal, at most {limit} s')
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(0.1)
        say(f'numsan: process {os.getpid()} goes on: the terminal was not free for {limit} s')
        return False

    def __exit__(self, *_):
        import fcntl
        import os
        if self.file is not None:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            os.close(self.file)


def guarded(debugger):
    """What its user computes at the prompt is not the program's, and one process at a time has the terminal."""
    own = debugger.interaction
    if hasattr(debugger, 'numsan_guarded'):
        return debugger

    def interaction(*arguments, **options):
        with Terminal() as free:
            if not free:
                return debugger.set_continue()
            was = core_pause(True)
            try:
                return own(*arguments, **options)
            finally:
                core_pause(was)
                if goes_on(debugger) or debugger.quitting:
                    unbind()

    debugger.numsan_guarded = True
    debugger.interaction = interaction
    return debugger


def bind(stopped):
    import builtins
    builtins._numsan = stopped


def unbind():
    import builtins
    vars(builtins).pop('_numsan', None)


def interact(debugger, frame):
    """The prompt of a debugger made of bdb, now and in that frame, which is the program's."""
    import bdb
    tracer = sys.gettrace()
    sys.settrace(None)
    outer, traces = frame, []
    while outer is not None:
        traces.append((outer, outer.f_trace, outer.f_trace_lines, outer.f_trace_opcodes))
        outer = outer.f_back
    bottom = debugger.botframe if getattr(debugger, 'botframe', None) in [one[0] for one in traces] else traces[-1][0]
    debugger.reset()
    debugger.botframe = bottom
    try:
        debugger.interaction(frame, None)
    except BaseException:
        sys.settrace(tracer)
        raise
    if debugger.quitting:
        raise bdb.BdbQuit
    if goes_on(debugger):
        for traced, own, lines, opcodes in traces:
            traced.f_trace, traced.f_trace_lines, traced.f_trace_opcodes = own, lines, opcodes
        if getattr(tracer, '__self__', None) is not debugger:
            sys.settrace(tracer)
        return
    known = getattr(debugger, 'frame_trace_lines_opcodes', None)  # since Python 3.13
    for traced, _, lines, opcodes in traces:
        if known is not None:
            known[traced] = (lines, opcodes)
        traced.f_trace = debugger.trace_dispatch
        traced.f_trace_lines = True
        if traced is bottom:
            break
    if hasattr(debugger, 'start_trace'):  # since Python 3.14
        debugger.start_trace()
    else:
        sys.settrace(debugger.trace_dispatch)


def call_breakpoint(frame):
    """breakpoint(), seen to be called at the file and line of `frame` and among its variables."""
    code = compile('\n' * (frame.f_lineno - 1) + '__import__("sys").breakpointhook()', frame.f_code.co_filename, 'exec')
    exec(code.replace(co_name=frame.f_code.co_name), frame.f_globals, dict(frame.f_locals))


def enter(frame):
    """The debugger that breakpoint() starts, in that frame."""
    import bdb
    import os
    import threading
    debugger = getattr(sys.gettrace(), '__self__', None)
    if not isinstance(debugger, bdb.Bdb):
        named = os.environ.get('PYTHONBREAKPOINT') or 'pdb.set_trace'
        if sys.breakpointhook is sys.__breakpointhook__ and named == 'pdb.set_trace':
            import pdb
            debugger = pdb.Pdb()
        else:
            made = []  # a debugger made of bdb is not started yet: it would stop in that call
            own = bdb.Bdb.set_trace
            here = threading.get_ident()

            def set_trace(self, *arguments, **options):
                return made.append(self) if threading.get_ident() == here else own(self, *arguments, **options)

            bdb.Bdb.set_trace = set_trace
            try:
                call_breakpoint(frame)
            finally:
                bdb.Bdb.set_trace = own
            if not made:
                return
            debugger = made[0]
    interact(guarded(debugger), frame)


ESCAPES = {'loss': 'the loss', 'gradient': 'a gradient', 'parameter': 'a parameter', 'buffer': 'a buffer',
           'optimizer_state': 'the optimizer state', 'collective': 'a collective', 'host': 'a number that was read'}


def said_of(finding):
    """The text of the exception."""
    lines = [f'{finding["code"]}: {finding["title"]}']
    place = finding.get('location')
    if place:
        file = f'cell In[{place["cell"]}]' if place.get('cell') else place['file']
        lines.append(f'  --> {file}:{place["line"]} in {place["function"]}')
        if place.get('code'):
            lines.append(f'      {place["code"]}')
    escape = finding.get('escape')
    if escape:
        name = f' ({escape["name"]})' if escape.get('name') else ''
        lines.append(f'it got into {ESCAPES.get(escape["into"], "a result")}{name} in step {escape["step"]}')
    return '\n'.join(lines)


def has_scaler():
    """Whether the program has a loss scaler: what overflows in its backward passes is that one's business first."""
    import gc
    import torch
    scaler = getattr(torch.amp, 'GradScaler', torch.cuda.amp.GradScaler)
    return any(scaler in type(thing).__mro__ and thing.is_enabled() for thing in gc.get_objects())


class Debugger:
    """What the core calls. What the debugger and fail() raise is raised by the operator that is running."""

    def __init__(self):
        import threading
        self.lock, self.process = threading.RLock(), 0

    def anybody_there(self):
        """multiprocessing gives its processes an input of their own, while descriptor 0 stays a terminal."""
        import os
        if os.environ.get('PYTHONBREAKPOINT') or sys.breakpointhook is not sys.__breakpointhook__:
            return True
        try:
            return sys.stdin.isatty()
        except (AttributeError, ValueError, OSError):
            return False

    def stop(self, file, line, index, place, text, document, inputs, outputs, scaled):
        import os
        import threading
        try:
            if scaled and has_scaler():
                return False
            frame = frame_of(sys._getframe().f_back, os.fsdecode(file), line, index)
            if self.process != os.getpid():  # a fork leaves locks as they were
                self.lock, self.process = threading.RLock(), os.getpid()
        except Exception:
            return True  # the program goes on as if nobody had wanted to stop it
        with self.lock:
            try:
                self.show(frame, place, text, document, inputs, outputs)
            except Exception:
                unbind()
                return True
            enter(frame)
        return True

    def show(self, frame, place, text, document, inputs, outputs):
        """What is known, on the terminal and in `_numsan`."""
        import json
        if sys.stdout is not None:
            sys.stdout.flush()
        say(text.decode(errors='replace').rstrip('\n'))
        limit = collective_timeout()
        if limit is not None:
            say(f'numsan: the other ranks wait for this one in their next collective, at most {limit} s')
        finding, place = json.loads(document), place.decode(errors='replace')
        bind(Stopped(finding, values_of(inputs), values_of(outputs), frame, place))

    def fail(self, file, line, index, place, text, document, inputs, outputs, scaled):
        import json
        finding = json.loads(document)
        error = NumericalError(said_of(finding))
        error.finding, error.inputs, error.outputs = finding, values_of(inputs), values_of(outputs)
        raise error


module = type(sys)(__name__, 'What numsan brings into a program that runs with break=1.')
module.NumericalError = NumericalError
sys.modules[__name__] = module
debugger = Debugger()
