# Third-party libraries, each behind one room: JSON and zlib in io, regular expressions in text.
find_path(NLOHMANN_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(ZLIB_INCLUDE zlib.h REQUIRED)
find_library(ZLIB_LIBRARY z REQUIRED)
find_path(PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)

target_include_directories(loom_io SYSTEM PRIVATE ${NLOHMANN_JSON_INCLUDE} ${ZLIB_INCLUDE})
target_link_libraries(loom_io PRIVATE ${ZLIB_LIBRARY})
target_include_directories(loom_text SYSTEM PRIVATE ${PCRE2_INCLUDE})
target_link_libraries(loom_text PRIVATE ${PCRE2_LIBRARY})
