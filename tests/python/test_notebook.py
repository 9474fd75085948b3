"""A real kernel: `%load_ext numsan`, the restart under numsan, findings by cell."""
import os

import pytest
from notebook_kernel import Kernel

LAYER = """import torch
def layer(x):
    y = x * 2
    return y.log()  # BUG
"""
BAD = """%%numsan

w = torch.nn.Parameter(torch.zeros(2))
w.sqrt().sum().backward()  # BUG
torch.optim.SGD([w], 0.1).step()
'shown'
"""


@pytest.fixture
def kernel(warm, tmp_path):
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


def test_a_notebook(kernel):
    status, text = kernel.run("%load_ext numsan\nx = 1\nx")
    assert (status, text) == ("ok", "1")
    status, text = kernel.run("%%numsan\nx = 2", answer="n")
    assert status == "error" and "start this kernel again under numsan? all variables are lost [y/N]" in text, text
    assert "`%numsan restart` starts it again" in text, text
    status, text = kernel.run("%%numsan\nx = 2")  # nobody can be asked, as under nbconvert
    assert status == "error" and "`%numsan restart` starts it again" in text, text
    assert kernel.run("x") == ("ok", "1"), "the cell was not run"
    status, text = kernel.run("%numsan restart tier fast")
    assert status == "error" and "expected nothing, or `restart` and options" in text, text

    status, text = kernel.run("%numsan restart tier=full history=8")
    assert status == "ok" and "the kernel starts again under numsan" in text, text
    kernel.wait_for_restart()
    assert os.path.exists(f"/proc/{kernel.process}") and kernel.manager.is_alive()
    status, text = kernel.run("print('to fd 1', flush=True)\nx")
    assert status == "error" and "NameError" in text and "to fd 1" in text, text

    assert kernel.run("%load_ext numsan")[0] == "ok"
    status, text = kernel.run(LAYER)
    assert (status, text) == ("ok", ""), text
    defined = kernel.number
    status, text = kernel.run("%%numsan\nfloat(layer(torch.ones(2)).exp().sum())")
    assert status == "ok" and text == "4.0numsan: no finding in this cell\n", text

    status, text = kernel.run(BAD, until="w.sqrt().sum().backward()  # BUG")
    assert status == "ok" and "'shown'" in text and "numsan: 1 finding in this cell" in text, text
    place = f"cell In[{kernel.number}]:4"
    assert f"--> {place} in <module>" in text and f" at {place}\n" in text, text
    assert "4  |     w.sqrt().sum().backward()  # BUG" in text, text

    status, text = kernel.run("float(layer(-torch.ones(2)).sum())", until="y.log()  # BUG")
    assert f"--> cell In[{defined}]:4 in layer" in text and "4  |     return y.log()  # BUG" in text, text
    status, text = kernel.run("import numsan, json\n"
                              "print([(f['location']['cell'], f['location']['code']) for f in numsan.findings()])")
    assert (f"[({int(place.split('[')[1].split(']')[0])}, 'w.sqrt().sum().backward()  # BUG'), "
                    f"({defined}, 'return y.log()  # BUG')]\n") in text, text
    status, text = kernel.run("%numsan")
    assert "numsan: 2 findings so far" in text and f"--> {place} in <module>" in text, text
