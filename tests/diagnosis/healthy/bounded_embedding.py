"""Gradients are accumulated, and the forward pass keeps the norm of the weight."""
import torch
import torch.nn.functional as F
torch.manual_seed(0)
e=torch.nn.Embedding(50,8,max_norm=1.0)
o=torch.optim.SGD(e.parameters(),lr=.1)
for i in range(160):
    z=e(torch.randint(0,50,(16,2)))
    ((z[:,0]-z[:,1]).square().sum(1)).mean().div(4).backward()
    if i%4==3: o.step(); o.zero_grad()
