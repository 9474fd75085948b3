"""A thread that is there before torch is, and trains."""
import threading

may_train = threading.Event()


def train():
    may_train.wait()
    import small_training
    small_training.show_and_go_bad(small_training.Training().steps())


if __name__ == "__main__":
    thread = threading.Thread(target=train)
    thread.start()
    import torch

    assert torch.ones(3).sum().item() == 3
    may_train.set()
    thread.join()
