# Target oga_json: nlohmann/json.hpp, from a CMake package, from OGA_JSON_HINTS, or from the PyPI package nlohmann-json
# (a build requirement of the Python package, so pip has it in place).
add_library(oga_json INTERFACE)
find_package(nlohmann_json 3.10 QUIET)
if(nlohmann_json_FOUND)
  target_link_libraries(oga_json INTERFACE nlohmann_json::nlohmann_json)
  return()
endif()

if(NOT OGA_JSON_HINTS)
  if(NOT Python_EXECUTABLE)
    find_program(Python_EXECUTABLE NAMES python3 python)
  endif()
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import nlohmann_json as m; print(list(m.__path__)[0] + '/include')"
    OUTPUT_VARIABLE OGA_JSON_HINTS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(OGA_JSON_INCLUDE nlohmann/json.hpp HINTS ${OGA_JSON_HINTS} PATH_SUFFIXES nlohmann_json/include)
if(NOT OGA_JSON_INCLUDE)
  message(FATAL_ERROR "nlohmann/json.hpp (3.10 or newer) was not found. Install it with `pip install nlohmann-json` or "
                      "`apt-get install nlohmann-json3-dev`, or pass -DOGA_JSON_HINTS=<folder that holds nlohmann/>.")
endif()
target_include_directories(oga_json SYSTEM INTERFACE ${OGA_JSON_INCLUDE})
