# Looks at what regions hand back that torch.compile made kernels of: the results of their calls, and the gradients of
# their backward passes. Where one is bad, the region's graph is run once more, op by op, on what the region was given:
# those ops are seen, and torch.ops.numsan.compiled_region says which of their results is which of the region's.
__name__ = '<numsan>'


def wait_for_compile_fx():
    import sys
    compile_fx_name = 'torch._inductor.compile_fx'
    most_bytes = 1 << 30  # of what a region was given, which is copied
    most_runs = 4  # of one graph: a run may stay bad

    def mend(module):
        import functools
        import threading
        import types
        import weakref

        import torch
        compile_fx, graph_module_type = module.compile_fx, torch.fx.GraphModule
        function_type, plain_types = type(mend), (torch.Tensor, torch.nn.Parameter)
        function_types = (function_type, type(len), type(torch.add))
        pure_modules = ('builtins', '_operator', 'operator', 'math', 'torch', 'torch.functional')
        pure_packages = ('torch._C', 'torch.nn.functional', 'torch._jit_internal', 'torch._tensor')
        pure_bodies = ('cond', 'while_loop', 'tag_activation_checkpoint', 'wrap', 'autograd_function_apply')
        compiling = threading.local()

        def is_plain(value):
            return type(value) in plain_types and value.device.type == 'cpu' and value.layout is torch.strided

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
            return type(target) in function_types and (home in pure_modules or home.startswith(pure_packages))

        class Region:
            """The graph of a region as it was before torch.compile changed it, and how often it was run."""

            def __init__(self, model):
                self.root, self.graph, self.module, self.forward, self.runs = model, None, None, None, 0
                parts = [part for part in model.modules() if isinstance(part, graph_module_type)]
                if all(is_pure(node) for part in parts for node in part.graph.nodes):
                    self.graph = torch.fx.Graph()
                    self.graph.output(self.graph.graph_copy(model.graph, {}))
                    for node in self.graph.nodes:
                        node.meta = {key: node.meta[key] for key in ('stack_trace', 'nn_module_stack') if key in node.meta}

            def run(self, values):
                if self.forward is None:
                    self.module = graph_module_type(self.root, self.graph)
                    # What the graph writes in place is its own. No module is called that the program does not have.
                    own = types.SimpleNamespace()
                    for name in {str(node.target).split('.')[0] for node in self.graph.nodes if node.op == 'get_attr'}:
                        value = getattr(self.module, name)
                        setattr(own, name, value.detach().clone() if isinstance(value, torch.Tensor) else value)
                    self.forward = functools.partial(type(self.module).forward, own)
                return self.forward(*values)

            def may_run(self, given):
                if self.graph is None or self.runs >= most_runs:
                    return False
                if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
                    return False
                tensors = [value for value in given if isinstance(value, torch.Tensor)]
                return (all(is_plain(value) if isinstance(value, torch.Tensor) else isinstance(value, (int, float))
                            for value in given) and
                        sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= most_bytes)

        def is_leaf(value):
            return value.is_leaf and value.requires_grad

        def copied(value, backward):
            if not isinstance(value, torch.Tensor):
                return value
            # Autograd lets no operator write to a leaf in place. A gradient that reached the program's own would call
            # its hooks.
            own = value if not is_leaf(value) or not torch.is_grad_enabled() else None
            if own is None:
                return value.detach().requires_grad_() if backward else value
            return own.detach().clone().requires_grad_(own.requires_grad)

        def numsan_runs_region(region, given, tangents=None):
            region.runs += 1
            state = torch.get_rng_state()
            try:
                if tangents is None:
                    return region.run([copied(value, False) for value in given])
                with torch.enable_grad():
                    copies = [copied(value, True) for value in given]
                    made = region.run(copies)
                    if len(made) != len(tangents):
                        return None
                    starts = [(output, tangent) for output, tangent in zip(made, tangents)
                              if tangent is not None and output.requires_grad]
                    leaves = [value for value in copies if isinstance(value, torch.Tensor) and value.requires_grad]
                    found = iter(torch.autograd.grad([output for output, _ in starts], leaves,
                                                     [tangent for _, tangent in starts], allow_unused=True))
                    return [next(found) if isinstance(value, torch.Tensor) and value.requires_grad else None
                            for value in copies]
            finally:
                torch.set_rng_state(state)

        def first_bad(values):
            any_bad = torch.ops.numsan.any_bad.default
            return next((value for value in values if is_plain(value) and any_bad([value])), None)

        def explain(region, given, results, tangents=None):
            """Results are bad. `given`: what the region was called with; None: that is gone."""
            read = given if tangents is None else tangents
            bad = first_bad(read) if read is not None else None
            # A run that has gone bad hands its values on.
            hands_on = bad is not None and (tangents is not None or is_leaf(bad))
            made = None
            if given is not None and not hands_on and region.may_run(given):
                made = numsan_runs_region(region, given, tangents)
            if made is None and bad is not None:
                made = [bad] * len(results)
            if type(made) not in (tuple, list) or len(made) != len(results):
                return
            own = {id(value) for value in given or ()}
            for replayed, result in zip(made, results):
                if is_plain(result) and is_plain(replayed) and id(result) not in own:
                    if first_bad((result,)) is not None and first_bad((replayed,)) is not None:
                        torch.ops.numsan.compiled_region.default(replayed.detach(), result.detach())

        def look(region, given, results, tangents=None):
            tensors = [result for result in results if is_plain(result)]
            if tensors and torch.ops.numsan.any_bad.default(tensors):
                explain(region, given() if tangents is not None else given, results, tangents)

        def node_of(results):
            """The autograd node of the call that returned them; None: there is none of torch.compile's."""
            for result in results:
                node = result.grad_fn if is_plain(result) else None
                for _ in range(3):  # results may be views of what the node returned
                    kind = getattr(node, '_forward_cls', None)
                    if kind is not None:
                        return node if kind.__name__ == 'CompiledFunction' else None
                    node = node.next_functions[0][0] if node is not None and node.next_functions else None
            return None

        def keep(node, region, given):
            """What the region was given stays known as long as it lives: a backward pass may want it."""
            kind = node._forward_cls
            if kind.__dict__.get('numsan_backward') is None:
                kind.numsan_backward = kind.backward
                kind.backward = staticmethod(with_looks_backward(kind.backward))
            kept = [weakref.ref(value) if isinstance(value, torch.Tensor) else value for value in given]
            node.numsan_call = (region, kept)

        def alive(kept):
            values = [value() if type(value) is weakref.ReferenceType else value for value in kept]
            return values if all(value is not None for value in values) else None

        def with_looks_backward(backward):
            def numsan_backward(ctx, *tangents):
                gradients = backward(ctx, *tangents)
                try:
                    region, kept = ctx.numsan_call
                    results = gradients if type(gradients) in (tuple, list) else (gradients,)
                    look(region, lambda: alive(kept), results, tangents)
                except Exception:
                    pass
                return gradients

            return as_of_torch(numsan_backward, backward)

        def with_looks(compiled, region):
            def numsan_region(*args, **kwargs):
                results = compiled(*args, **kwargs)
                try:
                    outputs = results if type(results) in (tuple, list) else (results,)
                    node = node_of(outputs) if torch.is_grad_enabled() else None
                    if node is not None and not kwargs:
                        keep(node, region, args)
                    look(region, args, outputs)
                except Exception:
                    pass
                return results

            numsan_region.__dict__.update(compiled.__dict__)
            return as_of_torch(numsan_region, compiled)

        def as_of_torch(function, original):
            # torch.compile knows by the file which frames are torch's own.
            origin = compile_fx.__code__
            function.__code__ = function.__code__.replace(co_filename=origin.co_filename,
                                                          co_firstlineno=origin.co_firstlineno)
            function.__module__, function.__qualname__ = original.__module__, original.__qualname__
            return function

        def numsan_compile_fx(model_, *args, **kwargs):
            if getattr(compiling, 'inside', False) or not isinstance(model_, graph_module_type):  # it calls itself
                return compile_fx(model_, *args, **kwargs)
            compiling.inside = True
            try:
                region = Region(model_)
            except Exception:
                region = None
            try:
                compiled = compile_fx(model_, *args, **kwargs)
            finally:
                compiling.inside = False
            return with_looks(compiled, region) if region is not None and type(compiled) is function_type else compiled

        for function in (look, explain, numsan_runs_region):
            as_of_torch(function, function)
        numsan_compile_fx.__doc__, numsan_compile_fx.__wrapped__ = compile_fx.__doc__, compile_fx
        module.compile_fx = as_of_torch(numsan_compile_fx, compile_fx)

    class Loader:
        """Loads the module as its own loader does, which it is given back, and mends it."""

        def __init__(self, loader):
            self.loader = loader

        def create_module(self, spec):
            return self.loader.create_module(spec)

        def exec_module(self, module):
            module.__spec__.loader = module.__loader__ = self.loader
            self.loader.exec_module(module)
            try:
                mend(module)
            except Exception:
                pass

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != compile_fx_name or Finder not in sys.meta_path:
                return None
            sys.meta_path.remove(Finder)
            for finder in list(sys.meta_path):
                find_spec = getattr(finder, 'find_spec', None)
                spec = find_spec(name, path, target) if find_spec is not None else None
                if spec is not None:
                    if hasattr(spec.loader, 'exec_module') and hasattr(spec.loader, 'create_module'):
                        spec.loader = Loader(spec.loader)
                    return spec
            return None

    if compile_fx_name in sys.modules:
        mend(sys.modules[compile_fx_name])
    else:
        sys.meta_path.insert(0, Finder)


wait_for_compile_fx()
del wait_for_compile_fx
