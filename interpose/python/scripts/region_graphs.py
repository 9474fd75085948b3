# The graph of a region that torch.compile makes kernels of: whether it may be run once more, and how. What it makes, a
# class, is asked for once torch.compile is used. Run before compiled_regions.py, with the same names.
__name__ = '<numsan>'


def make_region_class():
    import collections
    import functools
    import os
    import re
    import threading
    import types

    import torch
    most_bytes = 4 << 30  # of what a region was given and of what its ops may make
    share_of_memory = 4  # and at most such a part of the memory that is free
    most_kept = 64  # graphs, whose lines stay known
    most_runs = 4  # of one graph for the same kinds of bad values: a run may stay bad
    graph_module_type = torch.fx.GraphModule
    _, is_plain, _ = make_look_tests()
    number_types = (int, float, bool)
    function_types = (type(make_region_class), type(len), type(torch.add))
    pure_modules = ('builtins', '_operator', 'operator', 'math', 'torch', 'torch.functional', 'torch.nn.functional',
                    'torch._tensor', 'torch._jit_internal')
    pure_packages = ('torch._C._nn', 'torch._C._linalg', 'torch._C._special', 'torch._C._fft')
    pure_bodies = ('cond', 'while_loop', 'tag_activation_checkpoint', 'wrap', 'autograd_function_apply')
    draws = re.compile('rand|dropout|bernoulli|multinomial|normal|uniform|exponential|cauchy|geometric|poisson|'
                       'binomial|attention|gumbel|rrelu|fractional')
    in_place = re.compile(r'.*[^_]_|(__)?(setitem|delitem|i(add|sub|mul|matmul|truediv|floordiv|mod|pow|and|or|xor|'
                          r'lshift|rshift|concat))(__)?')
    kernel = re.compile(r'(\w+) = async_compile\.\w+\(')
    ran = []  # the graphs say what lines they were made of, when findings are named

    def may_draw(thread):
        home = getattr(getattr(thread, '_target', None), '__module__', None) or type(thread).__module__
        return thread is not threading.current_thread() and not home.startswith(
            ('torch.', 'tqdm.', 'concurrent.', 'multiprocessing.'))

    def name_of(node):
        return node.target if type(node.target) is str else getattr(node.target, '__name__', '')

    def is_pure(node):
        # A collective, or what a library's own operator does besides computing, must not happen twice.
        target = node.target
        if node.op != 'call_function':
            return node.op in ('placeholder', 'output', 'get_attr', 'call_method')
        if isinstance(target, torch._ops.HigherOrderOperator):
            return target.name() in pure_bodies
        if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return str(target).startswith(('aten.', 'prims.'))
        home = getattr(target, '__module__', None) or 'torch'
        return target is torch._C._set_grad_enabled or (
            type(target) in function_types and (home in pure_modules or home.startswith(pure_packages)))

    def may_write_parameters(node):
        # With gradients on autograd lets no operator write to a leaf in place; by these ways it does not see it.
        return name_of(node) in ('detach', 'detach_', '_set_grad_enabled')

    def may_write(node):
        if node.op not in ('call_function', 'call_method'):
            return False
        if isinstance(node.target, torch._ops.OpOverload):
            return node.target._schema.is_mutable
        if isinstance(node.target, (torch._ops.HigherOrderOperator, torch._ops.OpOverloadPacket)):
            return True
        name = name_of(node)
        return (in_place.fullmatch(name) is not None or 'out' in node.kwargs or (node.args and node.args[-1] is True) or
                any(node.kwargs.get(key) for key in ('inplace', 'max_norm')) or
                (name == 'embedding' and any(type(value) is not type(node) and value is not None
                                             for value in node.args[3:4])) or
                (name == 'batch_norm' and node.args[5:6] not in ((True,), (False,))) or
                name in ('instance_norm', 'rrelu'))

    def is_statistic(node):
        # Batch norm reads none in training.
        return all(name_of(user) == 'batch_norm' and node in user.args[1:3] and user.args[5:6] == (True,)
                   for user in node.users)

    def is_counter(node):
        return all(name_of(user) == 'add_' and user.args[0] is node and not user.users for user in node.users)

    def values_of(node):
        value = node.meta.get('example_value')
        return [part for part in (value if type(value) in (tuple, list) else (value,))
                if isinstance(part, torch.Tensor)]

    def bytes_of(value):
        count = value.numel()
        count = count if type(count) is int else count.node.hint
        return count * value.element_size()

    def number_in(path):
        try:
            with open(path) as file:
                text = file.read().strip()
            return int(text) if text.isdecimal() else None
        except OSError:
            return None

    def free_memory():
        free = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
        with open('/proc/self/cgroup') as file:
            groups = [line.rstrip('\n').split(':', 2) for line in file]
        for _, controllers, group in groups:
            of_memory = 'memory' in controllers.split(',')
            if not of_memory and controllers:
                continue
            names = (('memory.limit_in_bytes', 'memory.usage_in_bytes') if of_memory else
                     ('memory.max', 'memory.current'))
            root = '/sys/fs/cgroup' + ('/memory' if of_memory else '')
            while True:  # the group and those that it is in
                limit, used = (number_in(f'{root}{group.rstrip("/")}/{name}') for name in names)
                if limit is not None and used is not None:
                    free = min(free, max(0, limit - used))
                if group in ('', '/'):
                    break
                group = os.path.dirname(group)
        return free

    class Region:
        """The graph of a region as it was before torch.compile changed it, and how often it was run."""

        def __init__(self, model):
            self.root, self.graph, self.forward, self.runs = model, None, None, collections.Counter()
            self.kind = self.parameters = self.watched = None
            self.sources, self.kernels = [], []  # files that Inductor wrote of it, and what kernels those have
            parts = [part for part in model.modules() if isinstance(part, graph_module_type)]
            nodes = [node for part in parts for node in part.graph.nodes]
            values = [value for node in nodes for value in values_of(node)]
            self.writes = any(may_write_parameters(node) for node in nodes) or not torch.is_grad_enabled()
            self.draws = any(draws.search(name_of(node)) for node in nodes)
            if not all(is_pure(node) for node in nodes) or any(value.device.type != 'cpu' for value in values):
                return
            if any(node.op == 'get_attr' and not isinstance(getattr(part, str(node.target), None), graph_module_type)
                   for part in parts if part is not model for node in part.graph.nodes):
                return  # what a body of its own writes to would be the program's
            self.bytes = sum(bytes_of(value) for value in values)
            self.given_bytes = sum(bytes_of(value) for node in model.graph.nodes if node.op == 'placeholder'
                                   for value in values_of(node))
            self.graph = torch.fx.Graph()
            self.graph.output(self.graph.graph_copy(model.graph, {}))
            places = [node for node in self.graph.nodes if node.op == 'placeholder']
            self.statistics = {place for place, node in enumerate(places) if node.users and is_statistic(node)}
            self.counters = {place for place, node in enumerate(places) if node.users and is_counter(node)}
            counted = {user for place in self.counters for user in places[place].users}
            # What is only read is not copied. Where it came from is then known, as without torch.compile.
            inner = [node for part in parts if part is not model for node in part.graph.nodes]
            self.copies = any(may_write(node) for node in [*self.graph.nodes, *inner] if node not in counted)
            for node in self.graph.nodes:
                node.meta = {key: node.meta[key] for key in ('stack_trace', 'nn_module_stack') if key in node.meta}

        def sort_places(self, given):
            # A guard of torch.compile's knows which are parameters.
            self.parameters = [place for place, value in enumerate(given)
                               if type(value) is torch.nn.Parameter and value.requires_grad]
            self.others = sorted({*range(len(given))}.difference(self.parameters))
            self.watched = [place for place, value in enumerate(given) if isinstance(value, torch.Tensor) and
                            (self.writes or place in self.others)]

        def versions(self, given):
            if self.watched is None:
                self.sort_places(given)
            if not torch.is_inference_mode_enabled():
                try:
                    return [given[place]._version for place in self.watched]
                except RuntimeError:
                    pass  # one of them was made in inference mode
            # Writes to what was made there are not counted.
            return [(None if self.copies else 0) if given[place].is_inference() else given[place]._version
                    for place in self.watched]

        def run(self, values):
            if self.forward is None:
                module = graph_module_type(self.root, self.graph)
                # What the graph writes in place is its own. No module is called that the program does not have.
                own = types.SimpleNamespace()
                for name in {str(node.target).split('.')[0] for node in self.graph.nodes if node.op == 'get_attr'}:
                    value = getattr(module, name)
                    setattr(own, name, value.detach().clone() if isinstance(value, torch.Tensor) else value)
                self.forward = functools.partial(type(module).forward, own)
                module.__dict__['numsan_kernels'] = self.kernels
                if len(ran) < most_kept:
                    ran.append(module)
            return self.forward(*values)

        def read_sources(self):
            while self.sources:
                source = self.sources.pop()
                with open(source) as file:
                    lines = file.read().split('\n')
                backward = any(line.startswith('# AOT ID:') and '_backward' in line for line in lines)
                found = ((kernel.match(line), number) for number, line in enumerate(lines, 1))
                self.kernels += [(match.group(1), source, number, backward) for match, number in found if match]

        def may_run(self, given, kinds, backward):
            if self.runs[kinds, backward] >= most_runs or torch.is_anomaly_enabled():
                return False
            if self.draws and any(may_draw(thread) for thread in threading.enumerate()):
                return False  # its random numbers would come again
            tensors = [value for value in given if isinstance(value, torch.Tensor)]
            if not all(is_plain(value) if isinstance(value, torch.Tensor) else type(value) in number_types
                       for value in given):
                return False
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            growth = max(1, size / max(1, self.given_bytes))  # of dynamic shapes, in each of two dimensions
            made = self.bytes * growth * growth * (2 if backward else 1)
            return size + made <= min(most_bytes, free_memory() // share_of_memory)

    return Region
