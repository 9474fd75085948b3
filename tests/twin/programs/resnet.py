"""A small ResNet from timm: convolutions, batch normalisation with its running statistics, momentum, channels last."""
import timm
import torch
from state import show

torch.manual_seed(0)
model = timm.create_model("resnet10t", pretrained=False, num_classes=4).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
for step in range(20):
    images = torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
    loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([step % 3, 3]), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.inference_mode():
    print(model(images).argmax(1).tolist())
show(model)
