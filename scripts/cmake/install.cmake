# What is installed, and where: by `cmake --install` under one prefix, by pip into the folders that it has for commands
# and data, which lie under one prefix, too. Of `built`, the folder that numsan was built in.
if(SKBUILD)
  set(commands ${SKBUILD_SCRIPTS_DIR})
  set(libraries ${SKBUILD_DATA_DIR}/${CMAKE_INSTALL_LIBDIR}/numsan)
  set(shared ${SKBUILD_DATA_DIR}/share)
else()
  set(commands ${CMAKE_INSTALL_BINDIR})
  set(libraries ${CMAKE_INSTALL_LIBDIR}/numsan)
  set(shared ${CMAKE_INSTALL_DATAROOTDIR})
endif()
install(PROGRAMS ${built}/bin/numsan DESTINATION ${commands})
install(PROGRAMS ${built}/lib/libnumsan.so ${built}/lib/libnumsan_core.so DESTINATION ${libraries})
install(DIRECTORY ${built}/lib/adapter ${built}/lib/replay DESTINATION ${libraries} PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${built}/share/ DESTINATION ${shared} OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION ${shared}/doc/numsan)

# Adapters made ahead of time: a program whose torch has one needs no compiler.
set(NUMSAN_PREBUILT_TORCH "" CACHE STRING
    "make the adapter for these ahead of time: Pythons that have torch, or folders of torch, separated by ';'")
set(number 0)
set(maker ${built}/bin/numsan_prebuild)
if(TARGET numsan_prebuild)
  set(maker numsan_prebuild)
endif()
foreach(place ${NUMSAN_PREBUILT_TORCH})
  set(torch ${place})
  if(NOT IS_DIRECTORY ${place})
    execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH  # by which pip hides packages from a build
                    ${place} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                    OUTPUT_VARIABLE torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "NUMSAN_PREBUILT_TORCH: ${place} is neither a folder nor a Python that has torch")
    endif()
  endif()
  if(NOT EXISTS ${torch}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "NUMSAN_PREBUILT_TORCH: ${torch} has no lib/libtorch_cpu.so")
  endif()
  set(folder ${CMAKE_BINARY_DIR}/prebuilt/${number})
  add_custom_command(OUTPUT ${folder}.made
                     COMMAND ${built}/bin/numsan_prebuild ${torch} ${built}/lib/adapter ${folder}
                     COMMAND ${CMAKE_COMMAND} -E touch ${folder}.made
                     DEPENDS ${maker} ${adapter_sources} ${torch}/version.py
                     COMMENT "adapter for the torch in ${torch}" VERBATIM)
  list(APPEND prebuilt ${folder}.made)
  install(DIRECTORY ${folder}/ DESTINATION ${libraries}/prebuilt USE_SOURCE_PERMISSIONS)
  math(EXPR number "${number} + 1")
endforeach()
add_custom_target(numsan_prebuilt ALL DEPENDS ${prebuilt})
