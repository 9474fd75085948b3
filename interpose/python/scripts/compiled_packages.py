# Looks at what packages hand back that AOTInductor made: torch.ops.numsan.compiled_region says which of the results are
# bad, and whether the package was given something bad. Run after when_there.py.
__name__ = '<numsan>'


def wait_for_packages():
    import sys

    def mend(package):
        import torch
        from torch.utils._pytree import tree_leaves
        call = package.__call__
        bad_kinds, compiled_region = torch.ops.numsan.bad_kinds.default, torch.ops.numsan.compiled_region.default

        def first_bad(values):
            return next((value for value in values if isinstance(value, torch.Tensor) and bad_kinds([value])), None)

        def numsan_package(self, *args, **kwargs):
            results = call(self, *args, **kwargs)
            try:
                made = [result for result in tree_leaves(results) if first_bad([result]) is not None]
                given = tree_leaves((args, kwargs)) if made else ()
                bad = first_bad(given)
                for result in made:
                    if all(result is not value for value in given):
                        result = result.detach()
                        compiled_region(result if bad is None else bad.detach(), result)
            except Exception:
                pass
            return results

        as_of_torch(first_bad, first_bad, call.__code__)
        package.__call__ = as_of_torch(numsan_package, call, call.__code__)

    when_there(lambda: getattr(sys.modules.get('torch.export.pt2_archive._package'), 'AOTICompiledModel', None), mend)


wait_for_packages()
del wait_for_packages
