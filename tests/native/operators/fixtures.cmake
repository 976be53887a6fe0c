include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_operators test_models)
