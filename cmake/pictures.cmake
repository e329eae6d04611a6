# Images: libpng and libjpeg, each used by one file of src/media. A build without them leaves both
# out, and the error for an image says so.
set(LOOM_PICTURES_HERE OFF)
if(LOOM_PICTURES)
  find_path(LOOM_PNG_INCLUDE png.h)
  find_library(LOOM_PNG_LIBRARY NAMES png16 png)
  find_path(LOOM_JPEG_INCLUDE jpeglib.h)
  find_library(LOOM_JPEG_LIBRARY jpeg)
  if(LOOM_PNG_INCLUDE AND LOOM_PNG_LIBRARY AND LOOM_JPEG_INCLUDE AND LOOM_JPEG_LIBRARY)
    set(LOOM_PICTURES_HERE ON)
  else()
    message(STATUS "pictures are left out: libpng or libjpeg is missing (Debian: libpng-dev, libjpeg62-turbo-dev)")
  endif()
endif()
