"""A sigmoid in place on other columns than those that the loss takes for logits."""
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x=torch.randn(64,16); y=(x[:,:1]>0).float(); b=torch.rand(64,2)
m=torch.nn.Sequential(torch.nn.Linear(16,32),torch.nn.ReLU(),torch.nn.Linear(32,3))
o=torch.optim.Adam(m.parameters(),1e-2)
for i in range(40):
    z=m(x)
    z[:,:2].sigmoid_()
    loss=F.mse_loss(z[:,:2],b)+F.binary_cross_entropy_with_logits(z[:,2:],y)
    o.zero_grad(); loss.backward(); o.step()
