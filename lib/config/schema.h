// The config described for others: a JSON Schema for editors, and the reference table of docs/config.md. Both follow
// Visit (base/fields.h).
#ifndef SCALETRACE_CONFIG_SCHEMA_H_
#define SCALETRACE_CONFIG_SCHEMA_H_

#include <string>

namespace scaletrace {

// JSON Schema, draft-07. It accepts every config that the reader accepts; the reader also checks what a schema can't
// say (keys that belong together, spellings of numbers).
std::string JsonSchema();

// Every key: what it may be, its default, what it means. Markdown; docs/config.md is this text.
std::string ConfigReference();

}  // namespace scaletrace

#endif  // SCALETRACE_CONFIG_SCHEMA_H_
