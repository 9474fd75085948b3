"""A focal loss: nll_loss of weighted log-probabilities."""
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x=torch.randn(64,16); y=(x[:,0]>0).long()+(x[:,1]>0).long()
m=torch.nn.Sequential(torch.nn.Linear(16,32),torch.nn.ReLU(),torch.nn.Linear(32,3))
o=torch.optim.Adam(m.parameters(),1e-2)
for i in range(40):
    z=m(x)
    loss=F.nll_loss((1-F.softmax(z,1))**2*F.log_softmax(z,1),y)
    o.zero_grad(); loss.backward(); o.step()
print(loss.item())
