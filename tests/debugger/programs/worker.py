"""A DataLoader's worker makes an infinity, which gets into the loss of its parent."""
import torch


class Ratios(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(2) / torch.tensor([1.0, float(3 - index)])  # BUG


if __name__ == "__main__":
    model = torch.nn.Linear(2, 1)
    for batch in torch.utils.data.DataLoader(Ratios(), batch_size=2, num_workers=1):
        model(batch).mean().backward()
    print("the end")
