# What a build of Loom may switch. A consumer (add_subdirectory) gets the library alone.
option(LOOM_BUILD_CLI "Build the loom program" ${PROJECT_IS_TOP_LEVEL})
option(LOOM_BUILD_TESTS "Build the tests (needs GoogleTest)" OFF)
option(LOOM_BUILD_HASH "Offer the target loom_hash (tests/golden/hash_matrix.sh)" OFF)
option(LOOM_BUILD_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(LOOM_BUILD_BENCH "Build the programs of bench/" OFF)
option(LOOM_WARNINGS_AS_ERRORS "Treat warnings as errors" OFF)
option(LOOM_CORE_ONLY "Only the rooms up to grid: no files, no text, no program" OFF)
option(LOOM_THREADS "Use threads; OFF builds a single-threaded library" ON)
set(LOOM_SANITIZE "" CACHE STRING "Sanitizers for every target: address, undefined, thread, or a comma list")
set(LOOM_COVERAGE OFF CACHE BOOL "Instrument for gcovr")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A project that chose no build type would run the kernels unoptimized. This sets it for the folders of
# Loom alone; the cache, and with it the project around Loom, stays as it is.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

if(LOOM_THREADS)
  find_package(Threads REQUIRED)
endif()

# Flags that the numerics contract needs (docs/numerics.md), whatever the project around Loom asks for,
# and the warnings we keep clean. Rooms, tests and the program get them; users of loom::loom do not.
add_library(loom_flags INTERFACE)
target_compile_options(loom_flags INTERFACE -fno-fast-math -ffp-contract=off -fno-math-errno -Wall -Wextra -Wshadow
  -Wno-psabi -Wno-ignored-attributes -Wno-missing-field-initializers)
# Clang warns of a deprecated function inside std::stable_sort of the library of GCC 12.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(loom_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(LOOM_WARNINGS_AS_ERRORS)
  target_compile_options(loom_flags INTERFACE -Werror)
endif()
if(LOOM_THREADS)
  target_compile_definitions(loom_flags INTERFACE LOOM_THREADS=1)
else()
  target_compile_definitions(loom_flags INTERFACE LOOM_THREADS=0)
endif()
if(LOOM_SANITIZE)
  target_compile_options(loom_flags INTERFACE -fsanitize=${LOOM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(loom_flags INTERFACE -fsanitize=${LOOM_SANITIZE})
endif()
if(LOOM_COVERAGE)
  target_compile_options(loom_flags INTERFACE --coverage)
  target_link_options(loom_flags INTERFACE --coverage)
endif()
