"""Sets CUDA_INJECTION64_PATH after Python and torch have started, before CUDA has; prints whether the driver loaded it.

No part of numsan is in this: it asks what the driver does. INJECTED names the library, MARK the file that it makes.
"""
import ctypes
import os

import torch

libc = ctypes.CDLL(None)
libc.setenv(b"CUDA_INJECTION64_PATH", os.environ["INJECTED"].encode(), 1)
torch.ones(1, device="cuda")
torch.cuda.synchronize()
print("honoured", os.path.exists(os.environ["MARK"]))
