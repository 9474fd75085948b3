# Looks at what regions hand back that torch.compile made kernels of: the results of their calls, and the gradients of
# their backward passes. Where one is bad, the region's graph is run once more, op by op, on what the region was given:
# those ops are seen, and torch.ops.numsan.compiled_region says which of their results is which of the region's.
__name__ = '<numsan>'


def wait_for_torch():
    import sys
    most_bytes = 1 << 30  # of what a region was given, which is copied
    share_of_memory = 4  # what the ops may make is at most such a part of the memory that is free
    most_kept = 64  # graphs, whose lines stay known
    small_bytes = 1 << 12  # of memory that is kept for the backward pass
    most_runs = 4  # of one graph: a run may stay bad

    def make_looks():
        """What keeps a graph, and what looks at the results of a compiled function; once torch.compile is used."""
        import contextlib
        import functools
        import os
        import re
        import threading
        import types
        from weakref import ref

        import torch
        import torch._dynamo
        import torch._inductor.compile_fx
        origin, graph_module_type = torch._inductor.compile_fx.compile_fx.__code__, torch.fx.GraphModule
        function_type = type(make_looks)
        plain_types, number_types = (torch.Tensor, torch.nn.Parameter), (int, float, bool)
        looked_at = {*plain_types, type(None)}
        function_types = (function_type, type(len), type(torch.add))
        pure_modules = ('builtins', '_operator', 'operator', 'math', 'torch', 'torch.functional', 'torch.nn.functional',
                        'torch._tensor', 'torch._jit_internal')
        pure_packages = ('torch._C._nn', 'torch._C._linalg', 'torch._C._special', 'torch._C._fft')
        pure_bodies = ('cond', 'while_loop', 'tag_activation_checkpoint', 'wrap', 'autograd_function_apply')
        draws = re.compile('rand|dropout|bernoulli|multinomial|normal_|uniform_|exponential_|cauchy|geometric|poisson|'
                           'binomial|log_normal|attention')
        any_bad, compiled_region = torch.ops.numsan.any_bad.default, torch.ops.numsan.compiled_region.default
        function_modes, dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
        ran = []  # the graphs say what lines they were made of, when findings are named

        def is_plain(value):
            return type(value) in plain_types and value.device.type == 'cpu' and value.layout is torch.strided

        def is_small(value):
            return type(value) is torch.Tensor and value.untyped_storage().nbytes() <= small_bytes

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

        class Region:
            """The graph of a region as it was before torch.compile changed it, and how often it was run."""

            def __init__(self, model):
                self.root, self.graph, self.module, self.forward, self.runs = model, None, None, None, 0
                self.kind = self.parameters = self.watched = None
                parts = [part for part in model.modules() if isinstance(part, graph_module_type)]
                nodes = [node for part in parts for node in part.graph.nodes]
                values = [value for node in nodes for value in values_of(node)]
                self.writes = any(may_write_parameters(node) for node in nodes) or not torch.is_grad_enabled()
                self.draws = any(draws.search(name_of(node)) for node in nodes)
                if not all(is_pure(node) for node in nodes) or any(value.device.type != 'cpu' for value in values):
                    return
                self.bytes = sum(bytes_of(value) for value in values)
                self.graph = torch.fx.Graph()
                self.graph.output(self.graph.graph_copy(model.graph, {}))
                places = [node for node in self.graph.nodes if node.op == 'placeholder']
                self.statistics = {place for place, node in enumerate(places) if node.users and is_statistic(node)}
                self.counters = {place for place, node in enumerate(places) if node.users and is_counter(node)}
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
                return [given[place]._version for place in self.watched]

            def run(self, values):
                if self.forward is None:
                    self.module = graph_module_type(self.root, self.graph)
                    # What the graph writes in place is its own. No module is called that the program does not have.
                    own = types.SimpleNamespace()
                    for name in {str(node.target).split('.')[0] for node in self.graph.nodes if node.op == 'get_attr'}:
                        value = getattr(self.module, name)
                        setattr(own, name, value.detach().clone() if isinstance(value, torch.Tensor) else value)
                    self.forward = functools.partial(type(self.module).forward, own)
                    if len(ran) < most_kept:
                        ran.append(self.module)
                return self.forward(*values)

            def may_run(self, given):
                if self.graph is None or self.runs >= most_runs:
                    return False
                if self.draws and threading.active_count() > 1:  # whose random numbers would come again
                    return False
                tensors = [value for value in given if isinstance(value, torch.Tensor)]
                if not all(is_plain(value) if isinstance(value, torch.Tensor) else type(value) in number_types
                           for value in given):
                    return False
                free = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
                return (sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= most_bytes and
                        self.bytes <= free // share_of_memory)

        class Call:
            """What a region was called with. A backward pass may ask for it: only what lives is still known then."""

            def __init__(self, region, given, versions):
                self.region, self.versions = region, versions
                # The autograd graph keeps parameters alive. Few values that live on are no harm.
                self.parameters = [given[place] for place in region.parameters]
                self.others = [given[place] if type(given[place]) in number_types or is_small(given[place])
                               else ref(given[place]) for place in region.others]
                self.autocast = torch.get_autocast_dtype('cpu') if torch.is_autocast_enabled('cpu') else None

            def given(self):
                others = [value() if type(value) is ref else value for value in self.others]
                if any(value is None for value in others):
                    return None
                values = dict(zip(self.region.parameters, self.parameters)) | dict(zip(self.region.others, others))
                return [values[place] for place in range(len(values))]

        def copied(region, value, backward):
            if not isinstance(value, torch.Tensor):
                return value
            if value.is_leaf and value.requires_grad and not region.writes and torch.is_grad_enabled():
                # It is only read. A gradient that reached the program's own would call its hooks.
                return value.detach().requires_grad_() if backward else value
            return value.detach().clone().requires_grad_(value.requires_grad)

        def numsan_runs_region(region, values, tangents, autocast):
            state = torch.get_rng_state() if region.draws else None
            gradients = torch.is_grad_enabled()
            try:
                # Hooks of the program's hear of no tensor that its own forward pass does not save.
                same = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
                if tangents is None:
                    with same:
                        return region.run(values)
                typed = torch.autocast('cpu', autocast) if autocast is not None else contextlib.nullcontext()
                with torch.enable_grad(), same, typed:
                    made = region.run(values)
                if len(made) != len(tangents):
                    return None
                starts = [(output, tangent) for output, tangent in zip(made, tangents)
                          if tangent is not None and isinstance(output, torch.Tensor) and output.requires_grad]
                leaves = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad]
                found = iter(torch.autograd.grad([output for output, _ in starts], leaves,
                                                 [tangent for _, tangent in starts], allow_unused=True))
                return [next(found) if isinstance(value, torch.Tensor) and value.requires_grad else None
                        for value in values]
            finally:
                torch.set_grad_enabled(gradients)
                if state is not None:
                    torch.set_rng_state(state)

        def first_bad(values):
            return next((value for value in values if is_plain(value) and any_bad([value])), None)

        def unchanged(region, given, versions):
            """What it was given, None in the place of what was written to since."""
            before = dict(zip(region.watched, versions))
            return [value if place not in before or value._version == before[place] else None
                    for place, value in enumerate(given)]

        def run_again(region, given, tangents, autocast):
            changed = {place for place, value in enumerate(given) if value is None}
            if not region.may_run([value for value in given if value is not None]):
                return None
            if not changed <= region.statistics | region.counters:
                return None
            region.runs += 1
            values = [copied(region, value, tangents is not None) for value in given]
            for place in changed & region.counters:
                values[place] = torch.zeros((), dtype=torch.int64)
            return numsan_runs_region(region, values, tangents, autocast)

        def explain(region, given, versions, results, tangents=None, autocast=None):
            """Results are bad. `given`: what the region was called with; None: that is gone."""
            known = unchanged(region, given, versions) if given is not None else None
            read = tangents if tangents is not None else known or ()
            bad = first_bad(read)
            # A run that has gone bad hands its values on.
            hands_on = bad is not None and (tangents is not None or (bad.is_leaf and bad.requires_grad))
            made = run_again(region, known, tangents, autocast) if known is not None and not hands_on else None
            if made is None and bad is not None:
                made = [bad] * len(results)
            if type(made) not in (tuple, list) or len(made) != len(results):
                return
            own = {id(value) for value in given or ()}
            for replayed, result in zip(made, results):
                if is_plain(result) and is_plain(replayed) and id(result) not in own:
                    if first_bad((result,)) is not None and first_bad((replayed,)) is not None:
                        compiled_region(replayed.detach(), result.detach())

        explain = torch._dynamo.disable(explain)

        def bad_in(results):
            if not looked_at.issuperset(map(type, results)):
                results = [result if type(result) in plain_types else None for result in results]
            return any_bad(results)

        def own_node(region, results):
            """The autograd node of the region's call that returned them; None: there is none."""
            for result in results:
                node = result.grad_fn if type(result) in plain_types else None
                for _ in range(3):  # results may be views of what the node returned
                    kind = getattr(node, '_forward_cls', None)
                    if kind is not None:
                        known = kind is region.kind or (kind.__name__ == 'CompiledFunction' and
                                                        'numsan_backward' not in kind.__dict__)
                        return node if known and getattr(node, 'numsan_call', None) is None else None
                    node = node.next_functions[0][0] if node is not None and node.next_functions else None
            return None

        def keep(region, node, given, versions):
            if region.kind is not node._forward_cls:
                region.kind = node._forward_cls
                region.kind.numsan_backward = region.kind.backward
                region.kind.backward = staticmethod(with_looks_backward(region.kind.backward))
            node.numsan_call = Call(region, given, versions)

        def with_looks_backward(backward):
            def numsan_backward(ctx, *tangents):
                gradients = backward(ctx, *tangents)
                try:
                    if not function_modes() and not dispatch_modes():
                        results = gradients if type(gradients) in (tuple, list) else (gradients,)
                        if bad_in(results):
                            call = ctx.numsan_call
                            explain(call.region, call.given(), call.versions, results, tangents, call.autocast)
                except Exception:
                    pass
                return gradients

            return as_of_torch(numsan_backward, backward, origin)

        def with_looks(compiled, region):
            def numsan_region(*args, **kwargs):
                if kwargs or function_modes() or dispatch_modes() or torch.is_inference_mode_enabled():
                    return compiled(*args, **kwargs)
                try:
                    versions = region.versions(args)
                except Exception:
                    versions = None
                results = compiled(*args)
                try:
                    if versions is not None:
                        outputs = results if type(results) in (tuple, list) else (results,)
                        node = own_node(region, outputs) if torch.is_grad_enabled() else None
                        if node is not None:
                            keep(region, node, args, versions)
                        if bad_in(outputs):
                            explain(region, args, versions, outputs)
                except Exception:
                    pass
                return results

            numsan_region.__dict__.update(compiled.__dict__)
            return as_of_torch(numsan_region, compiled, origin)

        for function in (bad_in, own_node, keep, numsan_runs_region):
            as_of_torch(function, function, origin)
        for function in (Region.versions, Region.sort_places, Call.__init__, Call.given):
            as_of_torch(function, function, origin)
        return Region, with_looks

    def as_of_torch(function, original, origin):
        # torch.compile knows by the file which frames are torch's own.
        def of_torch(code):
            inner = tuple(of_torch(value) if type(value) is type(code) else value for value in code.co_consts)
            return code.replace(co_filename=origin.co_filename, co_firstlineno=origin.co_firstlineno, co_consts=inner)

        function.__code__ = of_torch(function.__code__)
        function.__module__, function.__name__ = original.__module__, original.__name__
        function.__qualname__, function.__doc__ = original.__qualname__, original.__doc__
        return function

    def mend(inductor):
        compile_model, looks = inductor.__call__, []

        def numsan_compiles(self, model_, inputs_):
            region = None
            try:
                if not looks:
                    looks.append(make_looks())
                region = looks[0][0](model_)
            except Exception:
                pass
            compiled = compile_model(self, model_, inputs_)
            if region is None or type(compiled) is not type(numsan_compiles):
                return compiled
            return looks[0][1](compiled, region)

        inductor.__call__ = as_of_torch(numsan_compiles, compile_model, compile_model.__code__)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            inductor = getattr(sys.modules.get('torch'), '_TorchCompileInductorWrapper', None)
            if inductor is not None and Finder in sys.meta_path:
                place = sys.meta_path.index(Finder)
                del sys.meta_path[place]
                try:
                    mend(inductor)
                except Exception:
                    pass
                # Whoever walks the list now steps over the finder that has moved up.
                find_spec = getattr(sys.meta_path[place], 'find_spec', None) if name and sys.meta_path[place:] else None
                return find_spec(name, path, target) if find_spec is not None else None
            return None

    sys.meta_path.insert(0, Finder)
    Finder.find_spec('')  # torch may be there already


wait_for_torch()
del wait_for_torch
