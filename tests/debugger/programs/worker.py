"""A DataLoader's worker makes an infinity, which gets into the loss of its parent."""
import torch


class Ratios(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(2) / torch.tensor([1.0, float(3 - index)])  # BUG


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    for step, batch in enumerate(torch.utils.data.DataLoader(Ratios(), batch_size=2, num_workers=1)):
        loss = model(batch).mean()
        loss.backward()  # LOSS
        print("step", step, "loss", loss.item())
    print("the end")
