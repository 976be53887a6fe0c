# What the tests of the C API need besides sources: the test models, and the documented example programs.
include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_capi test_models test_texts fake_extensions)
foreach(source IN LISTS c_programs)
  get_filename_component(name ${source} NAME_WE)
  add_dependencies(capi_${name} test_models)
endforeach()

set(examples ${PROJECT_SOURCE_DIR}/docs/examples/c)
add_executable(example_c ${examples}/two_prompts.c)
target_compile_options(example_c PRIVATE ${OGA_STRICT_C_FLAGS})
set_target_properties(example_c PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
add_executable(example_cpp ${examples}/two_prompts.cpp)
target_compile_options(example_cpp PRIVATE ${OGA_STRICT_CXX_FLAGS})
set_target_properties(example_cpp PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
foreach(example example_c example_cpp)
  target_link_libraries(${example} PRIVATE oga)
  target_link_options(${example} PRIVATE ${OGA_SANITIZE_FLAGS})
  add_dependencies(test_capi ${example})
endforeach()
target_compile_definitions(test_capi PRIVATE OGA_EXAMPLE_C="$<TARGET_FILE:example_c>"
                                             OGA_EXAMPLE_CPP="$<TARGET_FILE:example_cpp>")

# Not linked to liboga: it opens the library by itself.
add_executable(capi_plugin_test ${CMAKE_CURRENT_SOURCE_DIR}/capi/plugin/plugin_test.c)
target_include_directories(capi_plugin_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(capi_plugin_test PRIVATE ${OGA_STRICT_C_FLAGS})
target_link_options(capi_plugin_test PRIVATE ${OGA_SANITIZE_FLAGS})
target_link_libraries(capi_plugin_test PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(capi_plugin_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
add_dependencies(capi_plugin_test test_models oga)
oga_add_test(capi_plugin_test $<TARGET_FILE:oga>)

# The same tests over the remote device, which liboga.so does not have: the boundary's objects beside another table.
add_executable(test_capi_remote $<TARGET_OBJECTS:test_capi> $<TARGET_OBJECTS:oga>)
target_link_libraries(test_capi_remote PRIVATE test_worlds oga_core GTest::gtest_main)
add_dependencies(test_capi_remote test_capi)
oga_run_on_remote_device(test_capi test_capi_remote)

# The boundary over the scripted executor: what only happens when executions or allocations fail.
file(GLOB boundary_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/capi/boundary/*.cpp)
add_executable(test_capi_boundary ${boundary_tests} $<TARGET_OBJECTS:oga>
                                  ${CMAKE_CURRENT_SOURCE_DIR}/simulation/allocation_guard.cpp)
target_link_libraries(test_capi_boundary PRIVATE test_worlds oga_core)
oga_add_gtest(test_capi_boundary)
if(llguidance_library)  # as native/grammar/fixtures.cmake found it
  add_dependencies(test_capi_boundary python_symbols)
  set_property(TEST test_capi_boundary APPEND PROPERTY ENVIRONMENT OGA_TEST_LLGUIDANCE_LIBRARY=${llguidance_library})
endif()
