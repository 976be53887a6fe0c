include(${CMAKE_CURRENT_SOURCE_DIR}/models/models.cmake)
add_dependencies(test_engine test_models)
# The scripted model keeps its cache on the default device.
oga_run_on_remote_device(test_engine test_engine)
