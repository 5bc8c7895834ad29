// Random numbers against a second Philox written from the paper, Random123's published vectors, and the laws they
// should have.
#include "base/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <vector>

#include "tests/catch.h"

namespace scaletrace {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Salmon et al. 2011, section 3.3: ten rounds of two 32-bit multiplications; the key grows by Weyl constants.
Words Philox(Words counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

TEST_CASE("the Philox of this test gives Random123's published vectors") {
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(Philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random bits are Philox of index, stream and seed, word by word") {
  CHECK(RandomBits(0, static_cast<Stream>(0), 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x299f31d0a4093822}, ~std::uint64_t{0}}) {
    for (const std::uint64_t index :
         {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{0x85a308d3243f6a88}, ~std::uint64_t{0}}) {
      for (std::uint32_t stream = 1; stream <= 9; ++stream) {
        REQUIRE(RandomBits(seed, static_cast<Stream>(stream), index) ==
                Philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream, 0},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}));
      }
    }
  }
}

TEST_CASE("uniform numbers are 53 bits of the first two words, in 0 to 1 and evenly spread") {
  std::vector<int> bins(64);
  constexpr int kCount = 64000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double u = Uniform(11, Stream::kNoise, i);
    const Words words = RandomBits(11, Stream::kNoise, i);
    REQUIRE(u == std::ldexp(static_cast<double>(words[1]), -32) + std::ldexp(static_cast<double>(words[0] >> 11), -53));
    REQUIRE((u >= 0 && u < 1));
    ++bins[static_cast<std::size_t>(u * 64)];
  }
  double chi2 = 0;
  for (const int bin : bins) chi2 += (bin - 1000.0) * (bin - 1000.0) / 1000.0;
  CHECK(chi2 < 63 + 5 * std::sqrt(2 * 63.0));
  CHECK(chi2 > 63 - 5 * std::sqrt(2 * 63.0));
}

TEST_CASE("UniformBelow is the upper half of a 128-bit product") {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Words words = RandomBits(12, Stream::kBatchOrder, i);
    const std::uint64_t bits = static_cast<std::uint64_t>(words[1]) << 32 | words[0];
    for (const std::uint64_t bound : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{10}, std::uint64_t{1000003},
                                      std::uint64_t{1} << 40, std::uint64_t{0x9e3779b97f4a7c15}, ~std::uint64_t{0}}) {
      // Schoolbook by bits of the bound: floor(bits * bound / 2^64) with the lower half kept exactly.
      std::uint64_t high = 0;
      std::uint64_t low = 0;
      for (int bit = 63; bit >= 0; --bit) {
        high = high << 1 | low >> 63;
        low <<= 1;
        if (bound >> bit & 1) {
          low += bits;
          high += low < bits;
        }
      }
      REQUIRE(UniformBelow(12, Stream::kBatchOrder, i, bound) == high);
      REQUIRE(high < bound);
    }
  }
}

TEST_CASE("normal numbers have the moments and tails of the normal law") {
  constexpr int kCount = 400000;
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  int above[5] = {};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double z = Normal(21, Stream::kFeatures, i);
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    fourths += z * z * z * z;
    for (int k = 0; k < 5; ++k) above[k] += z > k;
  }
  // Five standard errors each.
  const double root = std::sqrt(static_cast<double>(kCount));
  CHECK(std::fabs(sum / kCount) < 5 / root);
  CHECK(std::fabs(squares / kCount - 1) < 5 * std::sqrt(2.0) / root);
  CHECK(std::fabs(cubes / kCount) < 5 * std::sqrt(15.0) / root);
  CHECK(std::fabs(fourths / kCount - 3) < 5 * std::sqrt(96.0) / root);
  for (int k = 0; k < 5; ++k) {
    const double p = std::erfc(k / std::sqrt(2.0)) / 2;
    CHECK(std::fabs(above[k] - kCount * p) < 5 * std::sqrt(kCount * p * (1 - p)) + 1);
  }
}

TEST_CASE("a normal number is Box and Muller's formula of the polar pair") {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Polar polar = RandomPolar(3, Stream::kTeacher, i);
    REQUIRE((polar.u > 0 && polar.u <= 1 && polar.turns >= 0 && polar.turns < 1));
    const double want = std::sqrt(-2 * std::log(polar.u)) * std::cos(2 * std::numbers::pi * polar.turns);
    REQUIRE(std::fabs(Normal(3, Stream::kTeacher, i) - want) < 1e-14);
  }
}

TEST_CASE("Student's t has the distribution function of its degrees of freedom") {
  constexpr int kCount = 100000;
  // Closed forms: Cauchy's law for 1; 1/2 + t / (2 sqrt(2 + t^2)) for 2; for 4 with s = t / sqrt(4 + t^2): 1/2 + 3/4 s
  // (1 - s^2 / 3).
  const auto cauchy = [](double t) { return 0.5 + std::atan(t) / std::numbers::pi; };
  const auto two = [](double t) { return 0.5 + t / (2 * std::sqrt(2 + t * t)); };
  const auto four = [](double t) {
    const double s = t / std::sqrt(4 + t * t);
    return 0.5 + 0.75 * s * (1 - s * s / 3);
  };
  const auto check = [&](double dof, auto distribution) {
    for (const double t : {-30.0, -6.0, -2.0, -1.0, -0.3, 0.0, 0.5, 1.5, 4.0, 20.0, 100.0}) {
      int below = 0;
      for (std::uint64_t i = 0; i < kCount; ++i) below += StudentT(31, Stream::kFeatures, i, dof) <= t;
      const double p = distribution(t);
      INFO("dof " << dof << ", t " << t);
      CHECK(std::fabs(below - kCount * p) < 5 * std::sqrt(kCount * p * (1 - p)) + 1);
    }
  };
  check(1, cauchy);
  check(2, two);
  check(4, four);
  check(1e6, [](double t) { return std::erfc(-t / std::sqrt(2.0)) / 2; });
}

TEST_CASE("streams, seeds and indexes give different numbers") {
  std::set<Words> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint32_t stream = 1; stream <= 9; ++stream) {
      for (std::uint64_t index = 0; index < 100; ++index)
        seen.insert(RandomBits(seed, static_cast<Stream>(stream), index));
    }
  }
  CHECK(seen.size() == 9000);
}

}  // namespace
}  // namespace scaletrace
