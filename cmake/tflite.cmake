# TFLite files: the reader converts them to ONNX, and walks the flatbuffer with the headers of
# flatbuffers. A build without one of the two leaves them out, and the error for such a file says
# so.
set(LOOM_TFLITE_HERE OFF)
if(LOOM_TFLITE AND LOOM_ONNX AND NOT LOOM_SMALL)
  find_path(LOOM_FLATBUFFERS_INCLUDE flatbuffers/verifier.h)
  if(LOOM_FLATBUFFERS_INCLUDE)
    set(LOOM_TFLITE_HERE ON)
  else()
    message(STATUS "TFLite files are left out: the headers of flatbuffers are missing (Debian: libflatbuffers-dev)")
  endif()
endif()
