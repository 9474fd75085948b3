# Finds what lines of generated code were made from: torch.fx writes Python functions whose frames stand in no file, and
# keeps with each node of the graph where the program called it. Leaves in `answer` lines
# "f <stack> <line> <function>\t<file>", frames innermost first, then "c <stack> <line> <module> <file>" for a line of
# generated code and "k <0 or 1: backward> <line> <name>\t<file>\t<file of the generated code>" for a kernel. Reads
# `modules`, those that torch.fx wrote, `types`, the type of each live module by its address, and functions_in(file),
# functions and classes that the modules of the program have from that file.


def traced_lines():
    import re, sys
    from collections import OrderedDict
    fx = sys.modules.get('torch.fx')
    graph_module_type = getattr(fx, 'GraphModule', None)
    graph_type, node_type = getattr(fx, 'Graph', None), getattr(fx, 'Node', None)
    if graph_type is None or node_type is None:
        return ''
    function_type = type(traced_lines)
    prefixes = ('<eval_with_key>', 'fx_generated_')
    assignment = re.compile(r'(\w+)(?: : [^=;]+)? = ')
    entry = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.M)
    resumed = re.compile(r'^torch_dynamo_resume_in_(.+)_at_\d+$')  # behind a graph break
    code_lines, numbers, stacks = [], {}, []
    left = 20000  # lines of code and nodes: some tenths of a second

    def is_a(value, kind):
        # isinstance() would run the program's own __class__ and __instancecheck__.
        return kind in type(value).__mro__

    def own_dict(value):
        dict_of = type.__dict__['__dict__']
        slots = [dict_of.__get__(kind).get('__dict__') for kind in type(value).__mro__]
        slot = next((slot for slot in slots if slot is not None), None)
        own = slot.__get__(value) if type(slot) is type(dict_of) else None
        return own if type(own) is dict else {}

    def clean(name):
        return str(name).replace('\n', ' ').encode('utf-8', 'replace').decode('utf-8')

    def generated_file(module):
        # A lazy module has no code of its own before its first call.
        for kind in type(module).__mro__:
            forward = type.__dict__['__dict__'].__get__(kind).get('forward')
            if forward is not None:
                file = forward.__code__.co_filename if type(forward) is function_type else ''
                return file if file.startswith(prefixes) else None

    def called(name):
        rest = resumed.match(name)
        return rest.group(1) if rest else name

    def stack_of(text):
        # Frames that were themselves generated say nothing.
        if text not in numbers:
            found = entry.findall(text)
            frames = [(file, int(line), called(name)) for file, line, name in found if not file.startswith(prefixes)]
            numbers[text] = len(stacks) if frames else None
            if frames:
                stacks.append(frames[-64:][::-1])
        return numbers[text]

    def module_of(meta):
        # Of the module that was called innermost: dynamo's keys are its address.
        kept = [meta.get('nn_module_stack'), meta.get('fwd_nn_module_stack')]
        calls = [list(called.items())[-1] for called in kept if type(called) in (dict, OrderedDict) and called]
        key, value = calls[0] if calls else ('', None)
        key = str(key).split('@')[0] if type(key) in (str, int) else ''
        address = int(key) if key.isdecimal() else 0
        known_type = value[1] if type(value) is tuple and len(value) == 2 else None
        return address if known_type is not None and types.get(address) is known_type else 0

    def read(module):
        nonlocal left
        file = generated_file(module)
        own = own_dict(module)
        code, graph = own.get('_code'), own.get('_graph')
        if file is None or type(code) is not str or not is_a(graph, graph_type):
            return
        for name, source, line, backward in own.get('numsan_kernels', ()):
            code_lines.append('k %x %x %s\t%s\t%s' % (backward, line, clean(name), clean(source), clean(file)))
        root = own_dict(graph)['_root']
        nodes, node = {}, root._next
        while node is not root and type(node) is node_type and left > 0:
            nodes[node.name] = node.meta
            node = node._next
            left -= 1
        for line, text in enumerate(code.split('\n'), 1):
            # By name: who edits a graph does not always write its code anew.
            found = assignment.search(text)
            meta = nodes.get(found.group(1)) if found else None
            trace = meta.get('stack_trace') if type(meta) is dict else None
            stack = stack_of(trace) if type(trace) is str else None
            left -= 1
            if stack is not None and left > 0:
                code_lines.append('c %x %x %x %s' % (stack, line, module_of(meta), clean(file)))

    for module in modules:
        if is_a(module, graph_module_type) and left > 0:
            try:
                read(module)
            except Exception:
                pass

    # Stacks of Python call a method by its qualified name.
    codes = {(file, name): [] for frames in stacks for file, _, name in frames}
    for file in {file for file, _ in codes}:
        for function in functions_in(file):
            code = function.__code__
            if (code.co_filename, code.co_name) in codes:
                codes[code.co_filename, code.co_name].append(code)

    def shown(file, line, name):
        above = [code for code in codes[file, name] if code.co_firstlineno <= line]
        nearest = max(above, key=lambda code: code.co_firstlineno, default=None)
        return getattr(nearest, 'co_qualname', name)

    frame_lines = ['f %x %x %s\t%s' % (number, line, clean(shown(file, line, name)), clean(file))
                   for number, frames in enumerate(stacks) for file, line, name in frames]
    return '\n'.join(frame_lines + code_lines)


answer = traced_lines()
del traced_lines  # it refers to this namespace
