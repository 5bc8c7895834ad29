#!/usr/bin/env python3
"""The synthetic data of docs/data.md a second time, in plain Python, written from that page alone.

Prints one line per kind and seed: kind, seed, SHA-256 of x, y and, for drift, y' and z, as little-endian f32. With --check it compares them with
checksums.tsv beside it, which the C++ tests read too. Leaves the sizes' limits and the files (given, csv) to the C++ tests.
"""
import hashlib
import math
import os
import struct
import sys

MASK = 0xFFFFFFFF


def f32(value):
    """Rounds to f32, to nearest even; an overflow is inf."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(seed, stream, index):
    c = [index & MASK, (index >> 32) & MASK, stream, 0]
    k0, k1 = seed & MASK, seed >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & MASK, (a >> 32) ^ c[3] ^ k1, a & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c[0] + (c[1] << 32), c[2] + (c[3] << 32)


def uniform(seed, stream, index):
    return (bits(seed, stream, index)[0] >> 11) * 2.0**-53


def below(seed, stream, index, m):
    return bits(seed, stream, index)[0] * m >> 64


def polar(seed, stream, index):
    a, c = bits(seed, stream, index)
    return (a >> 11) * 2.0**-53 + 2.0**-53, (c >> 11) * 2.0**-53


def normal(seed, stream, index):
    u, v = polar(seed, stream, index)
    return math.sqrt(-2.0 * log(u)) * cos_turns(v)


def student_t(seed, stream, index, nu):
    u, v = polar(seed, stream, index)
    return math.sqrt(nu * (exp2((-2.0 * log2(u)) / nu) - 1.0)) * cos_turns(v)


def horner(z, coefficients):
    p = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        p = p * z + c
    return p


def log_parts(x):
    m, e = math.frexp(x)  # 0.5 <= m < 1, exact
    m, e = 2 * m, e - 1
    if m >= float.fromhex("0x1.6a09e667f3bcdp+0"):
        m, e = m / 2, e + 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = horner(z, [1.0 / i for i in range(3, 22, 2)])
    return e, f - s * (f - (2.0 * z) * p)


def log(x):
    e, l = log_parts(x)
    return e * float.fromhex("0x1.62e42fefp-1") + (e * float.fromhex("0x1.473de6af278edp-34") + l)


def log2(x):
    e, l = log_parts(x)
    return e + l * float.fromhex("0x1.71547652b82fep+0")


def exp2(x):
    if x >= 1024:
        return math.inf
    if x < -1075:
        return 0.0
    n = int(x + (-0.5 if x < 0 else 0.5))
    t = (x - n) * float.fromhex("0x1.62e42fefa39efp-1")
    p = horner(t, [1.0 / math.factorial(i) for i in range(2, 14)])
    return math.ldexp(1.0 + (t + (t * t) * p), n)


def quarter(x):
    m = abs(x)
    f = m - int(m) if m < 2.0**52 else 0.0
    i = int(4.0 * f + 0.5)
    t = (f - 0.25 * i) * float.fromhex("0x1.921fb54442d18p+2")
    z = t * t
    c = 1.0 + z * horner(z, [(-1.0) ** (i // 2) / math.factorial(i) for i in range(2, 17, 2)])
    s = t + t * (z * horner(z, [(-1.0) ** (i // 2) / math.factorial(i) for i in range(3, 18, 2)]))
    return i, c, s


def cos_turns(x):
    i, c, s = quarter(x)
    return [c, 0.0 - s, -c, s, c][i]


def sin_turns(x):
    i, c, s = quarter(x)
    value = [s, c, 0.0 - s, -c, s][i]
    return 0.0 - value if x < 0 else value


class Maker:
    """One kind's data for the sizes of the checksums."""

    def __init__(self, seed):
        self.seed, self.n, self.d, self.k, self.sigma = seed, 37, 5, 3, f32(0.25)

    def features(self):
        return [f32(normal(self.seed, 1, i)) for i in range(self.n * self.d)]

    def targets(self, x, stream=2, sigma=None):
        sigma = self.sigma if sigma is None else sigma
        t = [normal(self.seed, stream, i) for i in range(self.d * self.k)]
        y = []
        for n in range(self.n):
            for k in range(self.k):
                total = 0.0
                for d in range(self.d):
                    total += x[n * self.d + d] * t[d * self.k + k]
                if sigma > 0:
                    total += sigma * normal(self.seed, 3, n * self.k + k)
                y.append(f32(total))
        return y

    def gaussian(self):
        x = self.features()
        return x, self.targets(x)

    def heavy_tailed(self, nu=2.5):
        x = [f32(student_t(self.seed, 1, i, nu)) for i in range(self.n * self.d)]
        return x, self.targets(x)

    def outliers(self, share=f32(0.2), factor=f32(33.3)):
        x, y = self.gaussian()
        for n in range(self.n):
            if uniform(self.seed, 4, n) < share:
                for values, width in ((x, self.d), (y, self.k)):
                    for i in range(n * width, (n + 1) * width):
                        values[i] = f32(values[i] * factor)
        return x, y

    def ill_conditioned(self, kappa=1000.0):
        n_rows, width = self.n, self.d
        r = min(n_rows, width)
        q = [1.0 if r == 1 else exp2(-(log2(kappa) * j) / (r - 1)) for j in range(r)]
        squares = 0.0
        for value in q:
            squares += value * value
        g = math.sqrt(width / squares)
        a = [(q[j] * g) * (1.0 if j == 0 else math.sqrt(2.0)) for j in range(r)]
        order = list(range(n_rows))
        for i in range(n_rows - 1, 0, -1):
            other = below(self.seed, 1, n_rows + i, i + 1)
            order[i], order[other] = order[other], order[i]
        x = []
        for n in range(n_rows):
            sign = 1.0 if uniform(self.seed, 1, n) < 0.5 else -1.0
            w = [sign * (a[j] * cos_turns(((2 * order[n] + 1) * j % (4 * n_rows)) / (4 * n_rows))) for j in range(r)]
            w += [0.0] * (width - r)
            p = 0
            while 2**p < width:
                h = 2**p
                for i in range(width - h):
                    if i % (2 * h) < h:
                        theta = uniform(self.seed, 5, p * width + i)
                        c, s = cos_turns(theta), sin_turns(theta)
                        w[i], w[i + h] = c * w[i] - s * w[i + h], s * w[i] + c * w[i + h]
                p += 1
            x += [f32(value) for value in w]
        return x, self.targets(x)

    def scaled(self, feature_factor=f32(1e-3), target_factor=f32(3e4)):
        x, y = self.gaussian()
        return [f32(value * feature_factor) for value in x], [f32(value * target_factor) for value in y]

    def drift(self):
        x = self.features()
        noise = [f32(self.sigma * normal(self.seed, 3, i)) for i in range(self.n * self.k)]
        return x, self.targets(x, 2, 0), self.targets(x, 6, 0), noise

    spikes = gaussian


def lines():
    for kind in ("gaussian", "heavy-tailed", "outliers", "ill-conditioned", "scaled", "drift", "spikes"):
        for seed in (1, 0xFEDCBA9876543210):
            parts = getattr(Maker(seed), kind.replace("-", "_"))()
            data = b"".join(struct.pack("<%df" % len(part), *part) for part in parts)
            yield "%s\t%d\t%s\n" % (kind, seed, hashlib.sha256(data).hexdigest())


def main():
    text = "kind\tseed\tsha256\n" + "".join(lines())
    if sys.argv[1:] != ["--check"]:
        sys.stdout.write(text)
        return 0
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "checksums.tsv"), encoding="ascii") as file:
        if file.read() == text:
            return 0
    sys.stderr.write("checksums.tsv differs from what docs/data.md says:\n" + text)
    return 1


if __name__ == "__main__":
    sys.exit(main())
