"""Of two large embeddings a step uses few rows."""
import torch
import torch.nn.functional as F
torch.manual_seed(0)
U=torch.nn.Embedding(1000000,8); V=torch.nn.Embedding(1000000,8)
for e in (U,V): torch.nn.init.normal_(e.weight,std=0.1)
u=torch.randint(0,1000000,(4000,)); v=torch.randint(0,1000000,(4000,)); y=torch.randint(0,2,(4000,)).float()
o=torch.optim.SGD([*U.parameters(),*V.parameters()],lr=0.5)
for i in range(62):
    s=slice(64*i,64*i+64)
    p=(U(u[s])*V(v[s])).sum(1)
    loss=F.binary_cross_entropy_with_logits(p,y[s])
    o.zero_grad(); loss.backward(); o.step()
print(loss.item())
