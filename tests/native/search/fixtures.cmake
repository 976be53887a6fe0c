# Counts the allocations of the program.
target_sources(test_search PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support/allocation_hooks.cpp)
