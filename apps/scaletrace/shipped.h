// The files of configs/, as part of the program.
#ifndef SCALETRACE_APPS_SHIPPED_H_
#define SCALETRACE_APPS_SHIPPED_H_

#include <span>
#include <string_view>

namespace scaletrace {

struct ShippedFile {
  std::string_view name;  // "quickstart.yaml"
  std::string_view text;
};

std::span<const ShippedFile> ShippedFiles();

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_SHIPPED_H_
