// What the program prints of formats.
#include "numerics/format_text.h"

#include <string>

#include "base/file.h"
#include "tests/catch.h"
#include "tests/numerics/support.h"

namespace scaletrace {
namespace {

TEST_CASE("every format has a line in the table of formats, with the facts of its sources") {
  const std::string table = FormatsTable();
  for (const Format& f : Formats()) CHECK_THAT("\n" + table, ContainsSubstring("\n" + std::string(f.name) + " "));
  for (const char* line : {
           "\nfloat8_e4m3fn       8  4   3     7  448            0.015625       0.001953125    0.125          NaN "
           "0x7f, no inf\n",
           "\nfloat16            16  5  10    15  65504          6.1035156e-05  5.9604645e-08  0.0009765625   inf "
           "0x7c00, NaN 0x7c01 to 0x7fff\n",
           "\nfloat8_e5m2fnuz     8  5   2    16  57344          3.0517578e-05  7.6293945e-06  0.25           NaN "
           "0x80, no inf, no -0\n",
           "\nfloat4_e2m1fn       4  2   1     1  6              1              0.5            0.5            none\n",
       }) {
    CHECK_THAT(table, ContainsSubstring(line));
  }
}

TEST_CASE("a format in full names its range, its codes, and its numbers where they are few") {
  CHECK(FormatText(*FindFormat("float4_e2m1fn")) ==
        "float4_e2m1fn: element of OCP MXFP4: every code a number\n"
        "\n"
        "  bits      4: 1 sign, 2 exponent (bias 1), 1 mantissa\n"
        "  epsilon   0.5 = 2^-1, from 1 to the next number\n"
        "  specials  none\n"
        "  overflow  becomes 6, as there is no inf and no NaN\n"
        "  NaN       has no code; stays NaN in the float32 that carries it\n"
        "  source    OCP Microscaling Formats (MX) Specification 1.0, 2023\n"
        "\n"
        "  largest             6 = 1.5 * 2^2  0x7  0|11|1\n"
        "  one                 1              0x2  0|01|0\n"
        "  smallest normal     1              0x2  0|01|0\n"
        "  largest subnormal   0.5            0x1  0|00|1\n"
        "  smallest subnormal  0.5 = 2^-1     0x1  0|00|1\n"
        "  zero                0              0x0  0|00|0\n"
        "  negative zero       -0             0x8  1|00|0\n"
        "\n"
        "  its numbers of positive sign: 0 0.5 1 1.5 2 3 4 6\n");
  const std::string e5m2 = FormatText(*FindFormat("float8_e5m2"));
  CHECK_THAT(e5m2, ContainsSubstring("57344 = 1.75 * 2^15    0x7b  0|11110|11\n"));
  CHECK_THAT(e5m2, ContainsSubstring("overflow  becomes inf; saturating 57344\n"));
  CHECK_THAT(e5m2, ContainsSubstring("ieee: inf 0x7c, NaN 0x7d to 0x7f\n"));
  CHECK_THAT(e5m2, ContainsSubstring("0x7e  0|11111|10\n"));
  CHECK_THAT(FormatText(*FindFormat("float8_e4m3fnuz")),
             ContainsSubstring("  NaN                 NaN                   0x80  1|0000|000\n"));
  // A format that is no row, and without subnormals.
  const std::string e5m0 = FormatText(CustomFormat(5, 0, Specials::kFn));
  CHECK_THAT(e5m0, ContainsSubstring("custom: given by its bits\n"));
  CHECK_THAT(e5m0, ContainsSubstring("0x1e  0|11110|\n"));
  CHECK(e5m0.find("subnormal") == std::string::npos);
  CHECK(e5m0.find("source") == std::string::npos);
}

TEST_CASE("a value is shown in each rounding mode, with the probabilities of stochastic rounding") {
  const Format& e4m3fn = *FindFormat("float8_e4m3fn");
  CHECK(ConversionText(e4m3fn, 0.296875f, "0.296875") ==
        "0.296875 as float32: 0.296875, 0x3e980000, 0|01111101|00110000000000000000000\n"
        "  nearest-even  0.3125   0x2a  0|0101|010\n"
        "  toward-zero   0.28125  0x29  0|0101|001\n"
        "  stochastic    0.28125  0x29  0|0101|001  with probability 0.5\n"
        "                0.3125   0x2a  0|0101|010  with probability 0.5\n");
  // Beyond the largest number, saturating gets lines of its own where it changes something.
  CHECK(ConversionText(e4m3fn, -472, "-472") ==
        "-472 as float32: -472, 0xc3ec0000, 1|10000111|11011000000000000000000\n"
        "  nearest-even              NaN   0xff  1|1111|111\n"
        "  nearest-even, saturating  -448  0xfe  1|1111|110\n"
        "  toward-zero               -448  0xfe  1|1111|110\n"
        "  stochastic                -448  0xfe  1|1111|110  with probability 0.25\n"
        "                            NaN   0xff  1|1111|111  with probability 0.75\n"
        "  stochastic, saturating    -448  0xfe  1|1111|110\n");
  // So does flushing below the smallest normal number.
  CHECK(ConversionText(e4m3fn, 0x1p-10f, "2^-10") ==
        "2^-10 as float32: 0.0009765625, 0x3a800000, 0|01110101|00000000000000000000000\n"
        "  nearest-even                    0            0x00  0|0000|000\n"
        "  toward-zero                     0            0x00  0|0000|000\n"
        "  stochastic                      0            0x00  0|0000|000  with probability 0.5\n"
        "                                  0.001953125  0x01  0|0000|001  with probability 0.5\n"
        "  stochastic, subnormals flushed  0            0x00  0|0000|000\n");
  CHECK(ConversionText(*FindFormat("float4_e2m1fn"), kNotANumber, "nan") ==
        "nan as float32: NaN, 0x7fc00000, 0|11111111|10000000000000000000000\n"
        "  nearest-even  NaN  no code\n"
        "  toward-zero   NaN  no code\n"
        "  stochastic    NaN  no code\n");
  // The smallest probability there is: one draw in 2^31.
  CHECK_THAT(ConversionText(e4m3fn, 0x1p-40f, ""), ContainsSubstring("with probability 0.9999999995343387\n"));
  CHECK_THAT(ConversionText(e4m3fn, 0x1p-40f, ""), ContainsSubstring("with probability 4.656612873077393e-10\n"));
}

TEST_CASE("docs/formats.md is what the program prints") {
  CHECK(ReadFile(SCALETRACE_SOURCE_DIR "/docs/formats.md", 1 << 20) == FormatsMarkdown());
}

}  // namespace
}  // namespace scaletrace
