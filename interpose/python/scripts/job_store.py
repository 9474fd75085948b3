# Leaves `text` for the other ranks of a job, or, where that is None, reads what ranks have left, of the first `most`
# texts, into `answer`: in the TCPStore by which torch.distributed's ranks found each other. By a connection of its own,
# as one call on the program's waits for another; and with little patience. `answer` stays None where there is none, and
# where this process is not `rank` of `world_size` there: launchers count processes, which may start ranks.


def ask_store():
    import datetime
    import socket
    import sys
    group = sys.modules.get('torch.distributed')
    if group is None or not group.is_available() or not group.is_initialized():
        return None
    if (group.get_rank(), group.get_world_size()) != (rank, world_size):
        return None
    store = root = group.distributed_c10d._get_default_store()
    while type(root) is group.PrefixStore:
        root = root.underlying_store
    if type(root) is not group.TCPStore:
        return None
    # Of a store that has gone torch would print where it asked for it.
    socket.create_connection((root.host, root.port), timeout=1).close()
    own = store.clone()  # with its prefixes: a launcher that starts ranks anew gives them others
    own.set_timeout(datetime.timedelta(seconds=2))
    if text is not None:
        number = own.add('numsan/count', 1)
        if number <= most:
            own.set('numsan/%d' % number, text)
            own.check(['numsan/count'])  # only an answer shows that it has arrived
        return []
    if not own.check(['numsan/count']):
        return []
    keys = ['numsan/%d' % number for number in range(1, min(own.add('numsan/count', 0), most) + 1)]
    return [own.get(key).decode('utf-8', 'replace') for key in keys if own.check([key])]


answer = None
try:
    answer = ask_store()
except Exception:
    pass
del ask_store  # it refers to this namespace
