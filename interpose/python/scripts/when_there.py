# Waits for something that an import brings, and stands in its place; when that may look at what torch computes. Run
# before the scripts that do, with the same names.
__name__ = '<numsan>'


def when_there(find, mend):
    """Calls mend(found) once find() finds something that is not None: now, or with the import after it, on whatever
    thread. A finder on sys.meta_path, which finds nothing, waits for it and is gone then."""
    import sys

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            found = find()
            if found is not None and Finder in sys.meta_path:
                place = sys.meta_path.index(Finder)
                del sys.meta_path[place]
                try:
                    mend(found)
                except Exception:
                    pass
                # Whoever walks the list now steps over the finder that has moved up.
                find_spec = getattr(sys.meta_path[place], 'find_spec', None) if name and sys.meta_path[place:] else None
                return find_spec(name, path, target) if find_spec is not None else None
            return None

    sys.meta_path.insert(0, Finder)
    Finder.find_spec('')


def as_of_torch(function, original, origin):
    """The function, with the name of the original; torch.compile knows by the file of `origin`, a code object, that it
    and what is defined in it are torch's own."""
    def of_torch(code):
        inner = tuple(of_torch(value) if type(value) is type(code) else value for value in code.co_consts)
        return code.replace(co_filename=origin.co_filename, co_firstlineno=origin.co_firstlineno, co_consts=inner)

    function.__code__ = of_torch(function.__code__)
    function.__module__, function.__name__ = original.__module__, original.__name__
    function.__qualname__, function.__doc__ = original.__qualname__, original.__doc__
    return function


def make_look_tests():
    """may_look(); is_plain(value), a tensor in host memory whose operators are torch's own; first_bad(values), the
    first plain one with a NaN, else with an infinity, or None."""
    import torch
    function_modes, dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
    profiles, plain_types = torch.autograd._profiler_enabled, (torch.Tensor, torch.nn.Parameter)
    bad_kinds, nan = torch.ops.numsan.bad_kinds.default, 1

    def may_look():
        # A mode or a profiler of the program's would see it.
        return not (function_modes() or dispatch_modes() or profiles())

    def is_plain(value):
        return type(value) in plain_types and value.device.type == 'cpu' and value.layout is torch.strided

    def first_bad(values):
        bad = [(value, kinds) for value in values if is_plain(value) and (kinds := bad_kinds([value]))]
        return next((value for value, kinds in bad if kinds & nan), bad[0][0] if bad else None)

    return may_look, is_plain, first_bad
