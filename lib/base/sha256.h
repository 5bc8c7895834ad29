// SHA-256, for run hashes and checksums of data.
#ifndef SCALETRACE_BASE_SHA256_H_
#define SCALETRACE_BASE_SHA256_H_

#include <string>
#include <string_view>

namespace scaletrace {

// 64 lower-case hexadecimal digits.
std::string Sha256(std::string_view bytes);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_SHA256_H_
