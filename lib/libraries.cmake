# The floors, lowest first. A library may use only what stands above it in this file and in its DEPS.
scaletrace_library(base
  SOURCES error.cc fields.cc number.cc file.cc cpus.cc team.cc math.cc random.cc json.cc sha256.cc
  DEPS nlohmann_json::nlohmann_json OpenSSL::Crypto Threads::Threads)
target_include_directories(scaletrace_base SYSTEM PRIVATE ${RANDOM123_INCLUDE_DIR})

scaletrace_library(numerics SOURCES format.cc format_text.cc DEPS scaletrace_base)
scaletrace_library(data SOURCES dataset.cc generators.cc given_data.cc csv_data.cc batches.cc DEPS scaletrace_base)
scaletrace_library(scaling SOURCES scaler.cc events.cc tensor_policies.cc DEPS scaletrace_base)
scaletrace_library(trace SOURCES columns.cc csv_writer.cc DEPS scaletrace_base)
scaletrace_library(compare SOURCES cell.cc row_reader.cc compare.cc report.cc chart.cc DEPS scaletrace_trace)
scaletrace_library(kernels SOURCES bf16_dot.cc kernels.cc many_runs.cc packed.cc reference.cc statistics.cc DEPS scaletrace_numerics scaletrace_highway)
scaletrace_library(model SOURCES model.cc packed_model.cc precision.cc DEPS scaletrace_kernels)
scaletrace_library(train SOURCES many_runs.cc optimizer.cc run.cc run_block.cc run_folder.cc single_step.cc summary.cc write_behind.cc DEPS scaletrace_model scaletrace_data scaletrace_scaling scaletrace_trace)
scaletrace_library(config SOURCES yaml.cc config.cc schema.cc DEPS scaletrace_train ${SCALETRACE_YAML})
target_link_libraries(scaletrace_config PRIVATE $<BUILD_INTERFACE:scaletrace_quick_compile>)
scaletrace_library(check SOURCES tolerance.cc case.cc junit.cc testing.cc DEPS scaletrace_config scaletrace_compare)
scaletrace_library(sweep SOURCES axis.cc condition.cc parts.cc plan.cc shard.cc spec.cc summarize.cc sweep.cc verdict.cc DEPS scaletrace_config Threads::Threads)
target_link_libraries(scaletrace_sweep PRIVATE $<BUILD_INTERFACE:scaletrace_quick_compile>)
