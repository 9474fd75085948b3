"""Greenlets that train, in a process in which gevent stands in for threads and locks, and a thread of its pool."""
from gevent import monkey

monkey.patch_all()

import threading  # noqa: E402

import gevent  # noqa: E402

import small_training  # noqa: E402


def train(number):
    training = small_training.Training(number)
    for _ in range(8):
        training.step()
        gevent.sleep(0)
    return training


first = train(0)
greenlets = [gevent.spawn(train, number) for number in (1, 2, 3)]
gevent.joinall(greenlets, raise_error=True)
for greenlet in greenlets:
    small_training.show(greenlet.value)
thread = threading.Thread(target=first.steps)  # a greenlet, too
thread.start()
thread.join()
gevent.get_hub().threadpool.spawn(first.steps).get()  # a real one
gevent.spawn(small_training.show_and_go_bad, first).get()
