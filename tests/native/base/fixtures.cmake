# Extension modules of Python packages, and a libpython that only the loader's search path leads to.
function(oga_add_fake_module name file)
  add_library(${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/base/fake_module/fake_module.c)
  set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME ${file} LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
  add_dependencies(test_base ${name})
endfunction()

oga_add_fake_module(fake_module_bound _fake.cpython-399-x86_64-linux-gnu)
oga_add_fake_module(fake_module_stable _fake.abi3)
oga_add_fake_module(fake_module_unnamed _fake)

add_library(fake_python SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/base/fake_module/fake_python.c)
set_target_properties(fake_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR}/python
                                             OUTPUT_NAME python3.9 SUFFIX ".so.1.0")
add_dependencies(test_base fake_python)
set_property(TEST test_base APPEND PROPERTY ENVIRONMENT LD_LIBRARY_PATH=${OGA_TEST_DATA_DIR}/python:$ENV{LD_LIBRARY_PATH})

# A library that nobody has loaded before the test of the loader does.
add_library(fake_leaf SHARED ${CMAKE_CURRENT_SOURCE_DIR}/native/base/fake_module/fake_leaf.c)
set_target_properties(fake_leaf PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OGA_TEST_DATA_DIR})
add_dependencies(test_base fake_leaf)
