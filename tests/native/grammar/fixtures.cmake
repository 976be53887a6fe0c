# Where the tests find llguidance: the extension module of the package installed for OGA_TEST_PYTHON. It refers to
# libpython's symbols and calls none of them here, so a library with those names stands in for a shared libpython, which
# many systems lack.
set(OGA_TEST_LLGUIDANCE_LIBRARY "" CACHE FILEPATH "llguidance's extension module (_lib*.so) that the tests load")
set(llguidance_library ${OGA_TEST_LLGUIDANCE_LIBRARY})
if(NOT llguidance_library AND OGA_TEST_PYTHON)
  execute_process(
    COMMAND ${OGA_TEST_PYTHON} -c "import importlib.util, pathlib; spec = importlib.util.find_spec('llguidance'); \
found = [str(file) for folder in spec.submodule_search_locations for file in pathlib.Path(folder).glob('_lib*.so')] \
if spec else []; print(found[0] if found else '', end='')"
    OUTPUT_VARIABLE llguidance_library)
endif()
if(llguidance_library)
  execute_process(COMMAND ${CMAKE_NM} -D --undefined-only ${llguidance_library} OUTPUT_VARIABLE undefined)
  string(REGEX MATCHALL "_?Py[A-Za-z0-9_]+" python_names "${undefined}")
  list(REMOVE_DUPLICATES python_names)
  list(TRANSFORM python_names REPLACE "(.+)" "*\\1[64]")
  list(JOIN python_names ", " python_symbols)
  file(CONFIGURE OUTPUT python_symbols.c CONTENT "void ${python_symbols};\n")
  add_library(python_symbols SHARED ${CMAKE_CURRENT_BINARY_DIR}/python_symbols.c)
  set_target_properties(python_symbols PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
  foreach(target test_grammar test_engine)
    add_dependencies(${target} python_symbols)
  endforeach()
  set_property(TEST test_grammar test_engine test_engine_remote
               APPEND PROPERTY ENVIRONMENT OGA_TEST_LLGUIDANCE_LIBRARY=${llguidance_library})
endif()
add_library(fake_llguidance SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/grammar/fake_llguidance/fake_llguidance.c)
add_library(fake_llguidance_old SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/grammar/fake_llguidance/fake_llguidance.c)
add_library(fake_llguidance_grown SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/grammar/fake_llguidance/fake_llguidance.c)
target_compile_definitions(fake_llguidance_old PRIVATE FAKE_VERSION="llguidance@1.7.6 derivre@0.3.12")
target_compile_definitions(fake_llguidance_grown PRIVATE FAKE_GROWN_BYTES=8)
set_target_properties(fake_llguidance fake_llguidance_old fake_llguidance_grown
                      PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
add_dependencies(test_grammar fake_llguidance fake_llguidance_old fake_llguidance_grown)
