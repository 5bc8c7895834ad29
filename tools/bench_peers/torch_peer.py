"""The step as PyTorch users write it: autocast to bfloat16, GradScaler, SGD. A peer for speed, not for bits: addmm rounds once, after adding the bias.

usage: torch_peer.py B D K STEPS    one line on standard input starts a measurement, the answer is nanoseconds for a step
"""

import resource
import sys
import time

import torch


def main(B, D, K, steps):
    torch.manual_seed(0)
    x = torch.randn(B, D)
    y = x @ torch.randn(D, K) + 0.1 * torch.randn(B, K)
    w = torch.zeros(D, K, requires_grad=True)
    b = torch.zeros(K, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_interval=100)

    def measure():
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                prediction = torch.addmm(b, x, w)
            loss = (prediction.float() - y).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return (time.perf_counter() - start) / steps * 1e9

    measure()
    print("ready", flush=True)
    for _ in sys.stdin:
        ns = measure()
        print(f"{ns:.4f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
