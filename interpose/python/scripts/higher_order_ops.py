# Mends torch._ops as soon as it is imported. Run after when_there.py.
__name__ = '<numsan>'


def wait_for_torch():
    import sys

    def mend(ops):
        key = sys.modules['torch._C']._parse_dispatch_key('Fake')  # the adapter's kHookKey
        extract = ops.key_extractor

        def key_extractor(tensors, key_mask):
            return extract(tensors, key_mask.remove(key))

        ops.key_extractor = as_of_torch(key_extractor, extract, extract.__code__)

    def find():
        ops = sys.modules.get('torch._ops')
        return ops if getattr(ops, 'key_extractor', None) is not None else None

    when_there(find, mend)


wait_for_torch()
del wait_for_torch
