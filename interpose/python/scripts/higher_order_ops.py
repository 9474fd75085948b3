# Mends torch._ops as soon as it is imported. Run after when_there.py.
__name__ = '<numsan>'


def wait_for_torch():
    import sys

    def mend(ops):
        key = sys.modules['torch._C']._parse_dispatch_key('Fake')  # the adapter's kHookKey
        extract = ops.key_extractor

        def key_extractor(tensors, key_mask):
            return extract(tensors, key_mask.remove(key))

        # torch.compile knows by the file which frames are torch's own.
        origin = extract.__code__
        key_extractor.__code__ = key_extractor.__code__.replace(co_filename=origin.co_filename,
                                                                co_firstlineno=origin.co_firstlineno)
        key_extractor.__module__, key_extractor.__qualname__ = extract.__module__, extract.__qualname__
        ops.key_extractor = key_extractor

    def find():
        ops = sys.modules.get('torch._ops')
        return ops if getattr(ops, 'key_extractor', None) is not None else None

    when_there(find, mend)


wait_for_torch()
del wait_for_torch
