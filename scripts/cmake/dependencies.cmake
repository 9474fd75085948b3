# Every library numsan is built with, one line why. Packages and versions are named in scripts/dependencies.
set(NUMSAN_CARRIED "" CACHE PATH "where these libraries lie that the machine lacks: a folder of `scripts/gpu_acceptance pack`")
if(NUMSAN_CARRIED)
  list(PREPEND CMAKE_PREFIX_PATH ${NUMSAN_CARRIED}/usr)
  include_directories(SYSTEM ${NUMSAN_CARRIED}/usr/include)  # libdw's headers have no package file
endif()
find_package(nlohmann_json 3.11 REQUIRED)  # reports: the JSON library people know, checked UTF-8 and exact numbers
find_package(fmt 9 REQUIRED)               # numbers as text: never cut short, whatever the program's locale
find_package(spdlog 1.10 REQUIRED)         # levels and formatting of log lines
# Both as headers: what is loaded into the host program needs no library besides libc.
add_library(numsan_logging_headers INTERFACE)
target_link_libraries(numsan_logging_headers INTERFACE fmt::fmt-header-only)
target_include_directories(numsan_logging_headers SYSTEM INTERFACE
                           $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(numsan_logging_headers INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL)
find_package(CLI11 2.1 REQUIRED)           # command line: usage errors, help and sub-commands we need not invent
# zlib: recordings are deflated and checked by CRC-32. Its archive: no library of ours in a program may ask for others.
find_library(NUMSAN_ZLIB libz.a REQUIRED)
# The plots of HTML reports, which take it with them: no page loads anything.
find_file(NUMSAN_CHART_JS chart.min.js PATHS ${NUMSAN_CARRIED}/usr/share/javascript/chart.js /usr/share/javascript/chart.js)
if(NUMSAN_CHART_JS)
  file(READ ${NUMSAN_CHART_JS} chart_head LIMIT 64)
endif()
if(NOT chart_head MATCHES "Chart\\.js v3\\.9\\.")
  message(FATAL_ERROR "Chart.js 3.9 was not found, which HTML reports plot with: scripts/setup installs it "
                      "(libjs-chart.js), or -DNUMSAN_CHART_JS=/path/to/chart.min.js names it")
endif()
find_path(NUMSAN_RAPIDJSON rapidjson/reader.h)     # reading thousands of reports, twice as fast as the library that writes them
if(NOT NUMSAN_RAPIDJSON)
  message(FATAL_ERROR "rapidjson/reader.h was not found, which reads reports: scripts/setup installs it (rapidjson-dev)")
endif()
find_path(NUMSAN_MUSTACHE kainjow/mustache.hpp)  # HTML reports: templates beside the code, escaping that is not forgotten
if(NOT NUMSAN_MUSTACHE)
  message(FATAL_ERROR "kainjow/mustache.hpp was not found, which fills the templates of HTML reports: "
                      "scripts/setup installs it (libkainjow-mustache-dev)")
endif()
include(CMakeDependentOption)              # the default follows a GTest that is installed later
find_package(GTest 1.12 QUIET)             # unit tests
if(NUMSAN_TESTS AND NOT GTest_FOUND)
  message(FATAL_ERROR "NUMSAN_TESTS is on and GTest 1.12 was not found: scripts/setup --tests installs it")
endif()
cmake_dependent_option(NUMSAN_TESTS "build the unit tests (needs GTest)" ON GTest_FOUND OFF)
if(NOT GTest_FOUND)
  message(STATUS "unit tests: not built, GTest was not found; scripts/setup --tests installs it")
endif()
if(NUMSAN_BENCH)
  find_package(benchmark 1.7 REQUIRED)     # micro benches
endif()
