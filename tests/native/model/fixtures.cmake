include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_model test_models test_texts)
oga_run_on_remote_device(test_model test_model)
# Counts the allocations of the program.
target_sources(test_model PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support/allocation_hooks.cpp)
