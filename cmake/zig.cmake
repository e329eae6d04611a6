# Toolchain for another system: clang with its C and C++ libraries, from the PyPI package ziglang
# (scripts/targets.sh, scripts/release.sh). LOOM_ZIG is its program. LOOM_ZIG_TARGET is the target,
# such as riscv64-linux-musl or x86_64-linux-gnu.2.28. LOOM_ZIG_TOOLS is the folder of ar and ranlib.
# LOOM_ZIG_ROOT is the folder of headers and libraries for the target.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOOM_ZIG LOOM_ZIG_TARGET LOOM_ZIG_TOOLS LOOM_ZIG_ROOT)
if(NOT LOOM_ZIG_TOOLS)
  set(LOOM_ZIG_TOOLS ${CMAKE_CURRENT_LIST_DIR}/../build/targets/bin)
endif()
if(NOT LOOM_ZIG_ROOT)
  set(LOOM_ZIG_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/targets/headers)
endif()
string(REPLACE "-" ";" parts ${LOOM_ZIG_TARGET})
list(GET parts 0 CMAKE_SYSTEM_PROCESSOR)
list(GET parts 1 system)
if(system STREQUAL "windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(system MATCHES "^macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
set(CMAKE_C_COMPILER ${LOOM_ZIG} cc)
set(CMAKE_C_COMPILER_TARGET ${LOOM_ZIG_TARGET})
set(CMAKE_CXX_COMPILER ${LOOM_ZIG} c++)
set(CMAKE_CXX_COMPILER_TARGET ${LOOM_ZIG_TARGET})
# The archiver of this machine may not support objects of other systems. These are two words of the
# script, because CMake's rules for Windows need programs here.
set(CMAKE_AR ${LOOM_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${LOOM_ZIG_TOOLS}/ranlib)
# Found once by the script, not searched for on this machine.
set(CMAKE_FIND_ROOT_PATH ${LOOM_ZIG_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
