# Third-party libraries, each behind one room: JSON, hashes and zlib in io, regular
# expressions in text. The names begin with LOOM_, so that a project around Loom can look for its own.
find_path(LOOM_NLOHMANN_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(LOOM_XXHASH_INCLUDE xxhash.h REQUIRED)
if(NOT LOOM_MINIMAL)
  find_path(LOOM_ZLIB_INCLUDE zlib.h REQUIRED)
  find_library(LOOM_ZLIB_LIBRARY z REQUIRED)
endif()
find_path(LOOM_PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(LOOM_PCRE2_LIBRARY pcre2-8 REQUIRED)

target_include_directories(loom_io SYSTEM PRIVATE ${LOOM_NLOHMANN_JSON_INCLUDE} ${LOOM_XXHASH_INCLUDE})
if(NOT LOOM_MINIMAL)
  target_include_directories(loom_io SYSTEM PRIVATE ${LOOM_ZLIB_INCLUDE})
  target_link_libraries(loom_io PRIVATE ${LOOM_ZLIB_LIBRARY})
endif()
target_include_directories(loom_text SYSTEM PRIVATE ${LOOM_PCRE2_INCLUDE})
target_link_libraries(loom_text PRIVATE ${LOOM_PCRE2_LIBRARY})
