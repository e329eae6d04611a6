# Toolchain for WebAssembly: Debian's clang-19, wasi-libc and libc++, and what scripts/install_wasm.sh puts into
# build/wasm-libraries (docs/decisions/0049-in-the-browser.md).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
# No code throws (docs/decisions/0001); exceptions from C++ callbacks, which the C interface would
# catch, cannot occur here.
set(CMAKE_CXX_FLAGS_INIT
  "-msimd128 -matomics -mbulk-memory -fignore-exceptions -fno-rtti -isystem ${CMAKE_CURRENT_LIST_DIR}/wasm")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/wasm-libraries)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
