"""A healthy training, and an evaluation without gradients that divides by the number of members of empty classes."""
import torch


@torch.no_grad()
def recall(model, x, labels):
    hits = model(x).argmax(-1) == labels
    members = torch.nn.functional.one_hot(labels, 3).sum(0)
    found = torch.nn.functional.one_hot(labels[hits], 3).sum(0)
    return found / members  # BUG


@torch.inference_mode()
def confidence(model, x):
    rows = model(x).softmax(-1)
    return (rows - rows).sum(-1).log()  # INFERENCE


torch.manual_seed(0)
model = torch.nn.Linear(2, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, labels = torch.randn(16, 2), torch.randint(2, (16,))
for step in range(3):
    loss = torch.nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
print("step 2 recall", recall(model, x, labels).nan_to_num().tolist())
print("step 2 confidence", confidence(model, x).exp().sum().item())
print("the end")
