# Toolchain for WebAssembly with addresses of 64 bits (memory64): clang-19, and the libraries that
# scripts/install_wasm64.sh compiles into build/wasm64-libraries (docs/decisions/0068-beyond-4-gib.md).
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET wasm64-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm64-wasi)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/wasm64-libraries)
set(CMAKE_CXX_FLAGS_INIT
  "-msimd128 -matomics -mbulk-memory -fignore-exceptions -fno-rtti -isystem ${CMAKE_CURRENT_LIST_DIR}/wasm")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -nodefaultlibs")
set(CMAKE_CXX_STANDARD_LIBRARIES "-lc++ -lc++abi -lc -lclang_rt.builtins")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
