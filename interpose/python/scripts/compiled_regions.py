# Looks at what regions hand back that torch.compile made kernels of: the results of their calls, and the gradients of
# their backward passes. Where one is bad, the region's graph is run once more, op by op, on what the region was given:
# those ops are seen, and torch.ops.numsan.compiled_region says which of their results is which of the region's. Run
# after region_graphs.py and when_there.py.
__name__ = '<numsan>'


def wait_for_torch():
    import sys
    most_small, small_bytes = 8, 1 << 12  # tensors, and bytes of each, that are kept for the backward pass

    def make_looks():
        """What keeps a graph, and what looks at the results of a compiled function; once torch.compile is used."""
        import contextlib
        from weakref import ref

        import torch
        import torch._dynamo
        import torch._inductor.compile_fx
        origin = torch._inductor.compile_fx.compile_fx.__code__
        function_type = type(make_looks)
        plain_types, number_types = (torch.Tensor, torch.nn.Parameter), (int, float, bool)
        looked_at = {*plain_types, type(None)}
        bad_kinds, compiled_region = torch.ops.numsan.bad_kinds.default, torch.ops.numsan.compiled_region.default
        may_look, is_plain, first_bad = make_look_tests()
        Region = make_region_class()

        kept = getattr(torch._inductor.codecache.PyCodeCache, 'modules', None)
        written = kept if type(kept) is list else []  # without it kernels have no names

        def sources():
            return len(written)

        def sources_since(before):
            files = [getattr(module, '__file__', None) for module in written[before:]]
            return [file for file in files if type(file) is str]

        def is_small(value):
            return type(value) is torch.Tensor and value.untyped_storage().nbytes() <= small_bytes

        class Call:
            """What a region was called with. A backward pass may ask for it: only what lives is still known then."""

            def __init__(self, region, given, versions):
                self.region, self.versions = region, versions
                # The autograd graph keeps parameters alive. Of other tensors few bytes live on, and no graph of theirs.
                small = [place for place in region.others if is_small(given[place])][:most_small]
                self.parameters = [given[place] for place in region.parameters]
                self.others = [given[place] if type(given[place]) in number_types else
                               (given[place].detach(), given[place].requires_grad) if place in small else
                               ref(given[place]) for place in region.others]
                self.autocast = torch.get_autocast_dtype('cpu') if torch.is_autocast_enabled('cpu') else None

            def given(self):
                others = [value() if type(value) is ref else
                          value[0].detach().requires_grad_(value[1]) if type(value) is tuple else value
                          for value in self.others]
                if any(value is None for value in others):
                    return None
                values = dict(zip(self.region.parameters, self.parameters)) | dict(zip(self.region.others, others))
                return [values[place] for place in range(len(values))]

        def copied(region, place, value, backward):
            if not isinstance(value, torch.Tensor):
                return value
            if not region.copies and place not in region.statistics and place not in region.counters:
                return value.detach().requires_grad_(value.requires_grad) if backward else value
            if value.is_leaf and value.requires_grad and not region.writes and torch.is_grad_enabled():
                # It is only read. A gradient that reached the program's own would call its hooks.
                return value.detach().requires_grad_() if backward else value
            return value.detach().clone().requires_grad_(value.requires_grad)

        def numsan_runs_region(region, values, tangents, autocast):
            state = torch.get_rng_state()
            gradients, keeps_casts = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
            try:
                torch.set_autocast_cache_enabled(False)  # the program would be given what was cast here
                # Hooks of the program's hear of no tensor that its own forward pass does not save.
                same = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
                if tangents is None:
                    with same:
                        return region.run(values)
                typed = (contextlib.nullcontext() if autocast is None else
                         torch.autocast('cpu', autocast, cache_enabled=False))
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
                torch.set_autocast_cache_enabled(keeps_casts)
                torch.set_grad_enabled(gradients)
                if not torch.equal(torch.get_rng_state(), state):
                    region.draws = True
                    torch.set_rng_state(state)

        def unchanged(region, given, versions):
            """What it was given, None in the place of what was written to since."""
            before, now = (dict(zip(region.watched, counts)) for counts in (versions, region.versions(given)))
            changed = {place for place, count in before.items() if count is None or count != now[place]}
            return [None if place in changed else value for place, value in enumerate(given)]

        def run_again(region, given, kinds, tangents, autocast):
            changed = {place for place, value in enumerate(given) if value is None}
            if not region.may_run([value for value in given if value is not None], kinds, tangents is not None):
                return None
            if not changed <= region.statistics | region.counters:
                return None
            region.runs[kinds, tangents is not None] += 1
            try:
                region.read_sources()
            except Exception:
                pass  # the kernels have no names
            values = [copied(region, place, value, tangents is not None) for place, value in enumerate(given)]
            for place in changed & region.counters:
                values[place] = torch.zeros((), dtype=torch.int64)
            return numsan_runs_region(region, values, tangents, autocast)

        def explain(region, given, versions, results, kinds, tangents=None, autocast=None):
            """Results hold bad values of these kinds. `given`: what the region was called with; None: that is gone."""
            known = unchanged(region, given, versions) if given is not None else None
            read = tangents if tangents is not None else known or ()
            bad = first_bad(read)
            # A run that has gone bad hands its values on.
            hands_on = bad is not None and (tangents is not None or (bad.is_leaf and bad.requires_grad))
            made = run_again(region, known, kinds, tangents, autocast) if known is not None and not hands_on else None
            if made is None and bad is not None:
                made = [bad] * len(results)
            elif made is None and tangents is None and not region.runs[kinds, False] and all(
                    is_plain(value) if isinstance(value, torch.Tensor) else value is not None for value in known):
                made = results  # never run again: all that is known is that what it was given was finite
            if type(made) not in (tuple, list) or len(made) != len(results):
                return
            own = {id(value) for value in given or ()}
            for replayed, result in zip(made, results):
                if id(result) not in own and first_bad((result,)) is not None and first_bad((replayed,)) is not None:
                    output = result.detach()
                    compiled_region(output if replayed is result else replayed.detach(), output)

        explain = torch._dynamo.disable(explain)

        def kinds_in(results):
            if not looked_at.issuperset(map(type, results)):
                results = [result if type(result) in plain_types else None for result in results]
            return bad_kinds(results)

        def own_node(region, given, results):
            """The autograd node of the region's call that returned them; None: there is none."""
            for result in results:
                if type(result) not in plain_types or any(value is result or value is result._base for value in given
                                                          if value is not None):
                    continue
                node = result.grad_fn
                for _ in range(3):  # results may be views of what the node returned
                    kind = getattr(node, '_forward_cls', None)
                    if kind is not None:
                        known = kind is region.kind or (kind.__name__ == 'CompiledFunction' and
                                                        'numsan_backward' not in kind.__dict__)
                        if known and getattr(node, 'numsan_call', None) is None:
                            return node
                        break
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
                before = sources()
                gradients = backward(ctx, *tangents)
                try:
                    if sources() != before:  # it was compiled just now
                        ctx.numsan_call.region.sources += sources_since(before)
                    if may_look():
                        results = gradients if type(gradients) in (tuple, list) else (gradients,)
                        call = ctx.numsan_call
                        if not torch._C._autograd._get_current_graph_task_keep_graph():
                            ctx.numsan_call = None
                        if kinds := kinds_in(results):
                            explain(call.region, call.given(), call.versions, results, kinds, tangents, call.autocast)
                except Exception:
                    pass
                return gradients

            return as_of_torch(numsan_backward, backward, origin)

        def with_looks(compiled, region):
            run = torch._dynamo.eval_frame.innermost_fn(compiled)

            def numsan_region(*args, **kwargs):
                if kwargs or not may_look():
                    return run(*args, **kwargs)
                try:
                    versions = region.versions(args)
                except Exception:
                    versions = None
                results = run(*args)
                if versions is None:
                    return results
                outputs = results if type(results) in (tuple, list) else (results,)
                try:
                    node = own_node(region, args, outputs) if torch.is_grad_enabled() else None
                    if node is not None:
                        keep(region, node, args, versions)
                except Exception:
                    pass
                try:
                    if kinds := kinds_in(outputs):
                        explain(region, args, versions, outputs, kinds)
                except Exception:
                    pass
                return results

            numsan_region.__dict__.update((name, value) for name, value in compiled.__dict__.items()
                                          if not name.startswith('_torchdynamo'))
            looks = as_of_torch(numsan_region, compiled, origin)
            # Where torch has a layer that keeps torch.compile out, there is one again, and not two.
            return looks if run is compiled else torch._dynamo.disable(looks, reason='do not trace AOT-compiled graph')

        for function in (may_look, kinds_in, own_node, keep, numsan_runs_region, sources, sources_since):
            as_of_torch(function, function, origin)
        for function in (Region.versions, Region.sort_places, Call.__init__, Call.given):
            as_of_torch(function, function, origin)
        return Region, with_looks, sources, sources_since

    def mend(inductor):
        compile_model, looks = inductor.__call__, []

        def numsan_compiles(self, model_, inputs_):
            region = None
            try:
                if not looks:
                    looks.extend(make_looks())
                region, before = looks[0](model_), looks[2]()
            except Exception:
                pass
            compiled = compile_model(self, model_, inputs_)
            if region is None or region.graph is None or type(compiled) is not type(numsan_compiles):
                return compiled
            try:
                region.sources += looks[3](before)
            except Exception:
                pass
            return looks[1](compiled, region)

        inductor.__call__ = as_of_torch(numsan_compiles, compile_model, compile_model.__code__)

    # The class stands at the end of torch's own module, before its last imports.
    when_there(lambda: getattr(sys.modules.get('torch'), '_TorchCompileInductorWrapper', None), mend)


wait_for_torch()
del wait_for_torch
