#!/usr/bin/env python3
"""PyTorch on a GPU, for comparison with `loom bench layers --suite B --modes gpu`: the same
networks, one step of SGD on the mean squared error, compiled and replayed as a CUDA graph. Prints
microseconds a step.

  bench/torch_gpu_peer.py [SECONDS]      # needs torch with CUDA; exit status 77 without
"""

import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(77)


def conv(kind, inner, outer):
    return [kind(inner, outer, 3, padding=1), nn.ReLU()]


def dense(*widths, relu=True):
    parts = []
    for a, b in zip(widths, widths[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return parts[:-1]  # the last is linear


NETWORKS = {
    "Dense MLP": (dense(128, 512, 512, 8), (64, 128)),
    "CNN1": (conv(nn.Conv1d, 3, 32) + conv(nn.Conv1d, 32, 64)
             + [nn.Flatten(), nn.Linear(8192, 8)], (32, 3, 128)),
    "CNN2": (conv(nn.Conv2d, 3, 16) + conv(nn.Conv2d, 16, 32)
             + [nn.Flatten(), nn.Linear(32768, 8)], (16, 3, 32, 32)),
    "CNN3": (conv(nn.Conv3d, 2, 8) + [nn.Flatten(), nn.Linear(4096, 8)], (8, 2, 8, 8, 8)),
    "RMSNorm MLP": ([nn.Linear(128, 512), nn.RMSNorm(512), nn.Linear(512, 512), nn.ReLU(),
                     nn.Linear(512, 8)], (64, 128)),
    "Deep Dense": (dense(128, 512, 512, 512, 512, 8), (64, 128)),
}  # fmt: skip


def graph_of(step):
    """The step as a CUDA graph, after a few steps on a side stream as the graph's rules ask."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def microseconds(run, seconds):
    """The minimum mean of 100 consecutive runs, without a wait after each."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(100):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e4)
    times.sort()
    return times[len(times) // 2], times[0]


def main():
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 77
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for name, (parts, shape) in NETWORKS.items():
        torch.manual_seed(1)
        net = nn.Sequential(*parts).cuda()
        x, y = torch.randn(shape, device="cuda"), torch.randn(shape[0], 8, device="cuda")
        forward = torch.compile(lambda a, b, net=net: nn.functional.mse_loss(net(a), b))
        optimizer = torch.optim.SGD(net.parameters(), 1e-3, foreach=True)

        def step(forward=forward, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad(set_to_none=False)
            forward(x, y).backward()
            optimizer.step()

        median, least = microseconds(graph_of(step), seconds)
        print(f"B     {name:20} median {median:9.1f} us  min {least:9.1f} us", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
