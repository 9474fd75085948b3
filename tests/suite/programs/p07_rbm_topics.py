"""RBM over word counts, free energy as log(1 + exp(x)); a very long document arrives."""
# label: phase=forward mechanism=OVF category=N2 category_alt=N4 birth_op=aten::exp kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=rbm family=exp needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class CountRBM(nn.Module):
    def __init__(self, words=20, topics=6):
        super().__init__()
        self.W = nn.Parameter(torch.full((words, topics), 0.05))
        self.a = nn.Parameter(torch.zeros(words))
        self.b = nn.Parameter(torch.zeros(topics))

    def reconstruct(self, counts):
        """One mean-field step of contrastive divergence that keeps the document's length."""
        topics = torch.sigmoid(counts @ self.W + self.b)
        words = torch.softmax(topics @ self.W.t() + self.a, dim=1)
        return words * counts.sum(dim=1, keepdim=True)

    def free_energy(self, counts):
        pre = counts @ self.W + self.b
        hidden = torch.log(1 + torch.exp(pre)).sum(dim=1)  # BUG
        return -counts @ self.a - hidden


torch.manual_seed(7)
rbm = CountRBM().to(DEVICE)
opt = torch.optim.SGD(rbm.parameters(), lr=1e-5, momentum=0.5)
documents = [torch.randint(0, 3, (12, 20)).float() for _ in range(4)]
documents[2][3] += 150.0  # a whole book among the abstracts

for counts in documents:
    counts = counts.to(DEVICE)
    with torch.no_grad():
        model_counts = rbm.reconstruct(counts)
    loss = (rbm.free_energy(counts) - rbm.free_energy(model_counts)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

print("free energy gap %.4f" % loss.item())
