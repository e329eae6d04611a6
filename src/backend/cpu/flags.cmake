# Per-file instruction-set flags. Never -march=native: the library must run on what cpuid reports, not on the build host.
set(here ${PROJECT_SOURCE_DIR}/src/backend/cpu)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${here}/isa_avx2.cpp PROPERTIES COMPILE_OPTIONS "-mavx2;-mf16c;-mbmi2")
  set_source_files_properties(${here}/isa_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mf16c;-mbmi2;-mprefer-vector-width=512")
  set_source_files_properties(${here}/isa_simd128.cpp PROPERTIES HEADER_FILE_ONLY ON)
else()
  set_source_files_properties(${here}/isa_avx2.cpp ${here}/isa_avx512.cpp PROPERTIES HEADER_FILE_ONLY ON)
endif()
# GCC 12 reports its own intrinsics headers, and sums that are always written before they are read, as uninitialised.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_property(SOURCE ${here}/isa_scalar.cpp ${here}/isa_avx2.cpp ${here}/isa_avx512.cpp ${here}/isa_simd128.cpp
    APPEND PROPERTY COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()
