"""A low-rank adapter starts at zero; gradients are accumulated."""
import torch
torch.manual_seed(0)
class L(torch.nn.Module):
    def __init__(s,n=64,r=4):
        super().__init__(); s.w=torch.nn.Linear(n,n); s.w.requires_grad_(False)
        s.A=torch.nn.Parameter(torch.randn(r,n)/8); s.B=torch.nn.Parameter(torch.zeros(n,r))
    def forward(s,x): return s.w(x)+x@s.A.t()@s.B.t()
m=torch.nn.Sequential(L(),torch.nn.ReLU(),L())
o=torch.optim.AdamW([p for p in m.parameters() if p.requires_grad],1e-4)
x=torch.randn(4096,64); y=torch.randn(4096,64)
for i in range(48):
    s=slice(32*i,32*i+32)
    ((m(x[s])-y[s]).square().mean()/4).backward()
    if i%4==3: o.step(); o.zero_grad()
