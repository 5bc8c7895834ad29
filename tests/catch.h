// Catch2, version 2 or 3, whichever is installed.
#ifndef SCALETRACE_TESTS_CATCH_H_
#define SCALETRACE_TESTS_CATCH_H_

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif

#endif  // SCALETRACE_TESTS_CATCH_H_
