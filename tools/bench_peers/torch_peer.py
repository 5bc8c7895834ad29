"""The step as PyTorch users write it: autocast to bfloat16, GradScaler, SGD. A peer for speed, not for bits: addmm rounds once, after adding the bias.

usage: torch_peer.py B D K STEPS    one line on standard input starts a measurement, the answer is nanoseconds for a step
"""

import sys
import time

import torch


def peak_kilobytes():
    """The most memory that this process has had; getrusage would count what the process that started it had."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM:")).split()[1])


def main(B, D, K, steps):
    torch.manual_seed(0)
    x = torch.randn(B, D)
    y = x @ torch.randn(D, K) + 0.1 * torch.randn(B, K)
    w = torch.zeros(D, K, requires_grad=True)
    b = torch.zeros(K, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, growth_interval=2000)

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
        print(f"{ns:.4f} {peak_kilobytes()}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
