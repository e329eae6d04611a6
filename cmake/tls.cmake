# TLS of `loom serve` and `loom donate`, by OpenSSL under Boost.Asio. The error of a build without
# it says so.
set(LOOM_TLS_HERE OFF)
if(LOOM_TLS)
  find_package(OpenSSL 3.0 COMPONENTS SSL Crypto)
  if(OPENSSL_FOUND)
    set(LOOM_TLS_HERE ON)
  else()
    message(STATUS "TLS is left out: OpenSSL is missing (Debian: libssl-dev)")
  endif()
endif()
