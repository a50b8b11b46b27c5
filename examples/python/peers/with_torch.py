"""The same program in four frameworks: PyTorch with DistributedDataParallel, started by torchrun."""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

is_gpu = torch.cuda.is_available()
dist.init_process_group("nccl" if is_gpu else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if is_gpu else torch.device("cpu")
data = np.load("digits.npz")
records = TensorDataset(torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).long())
sampler = DistributedSampler(records)
loader = DataLoader(records, batch_size=64 // dist.get_world_size(), sampler=sampler)
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
parallel = DistributedDataParallel(model)
optimizer = torch.optim.Adam(parallel.parameters())
for epoch in range(3):
    sampler.set_epoch(epoch)
    total, right = 0.0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        output = parallel(x)
        loss = nn.functional.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        right += (output.argmax(1) == y).sum().item()
    sums = torch.tensor([total, right], device=device)
    dist.all_reduce(sums)
    if dist.get_rank() == 0:
        print(f"epoch {epoch + 1}/3 loss {sums[0] / len(records):.4f} "
              f"accuracy {sums[1] / len(records):.4f}")
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "digits.pt")
dist.destroy_process_group()
