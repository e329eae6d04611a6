# Third-party libraries, each behind one room: JSON and zlib in io, regular expressions and Unicode in text.
find_path(NLOHMANN_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(ZLIB_INCLUDE zlib.h REQUIRED)
find_library(ZLIB_LIBRARY z REQUIRED)
find_path(PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

target_include_directories(loom_io SYSTEM PRIVATE ${NLOHMANN_JSON_INCLUDE} ${ZLIB_INCLUDE})
target_link_libraries(loom_io PRIVATE ${ZLIB_LIBRARY})
target_include_directories(loom_text SYSTEM PRIVATE ${PCRE2_INCLUDE} ${UTF8PROC_INCLUDE})
target_link_libraries(loom_text PRIVATE ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY})
