# Makes files part of a library, byte for byte: page.css is file_page_css() of the header, in namespace numsan. An
# assembler takes them in, so that no compiler reads them as literals. FILES has NAME=PATH for one with another name.
function(numsan_embed_files target header)
  set(assembly "    .section .rodata\n")
  set(declarations "")
  set(paths "")
  foreach(entry ${ARGN})
    string(REGEX REPLACE "=.*" "" name ${entry})
    string(REGEX REPLACE "^[^=]*=" "" path ${entry})
    get_filename_component(name ${name} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    list(APPEND paths ${path})
    string(APPEND assembly "    .balign 16\n    .globl numsan_file_${name}\n    .hidden numsan_file_${name}\n"
           "numsan_file_${name}:\n    .incbin \"${path}\"\n    .globl numsan_file_${name}_end\n"
           "    .hidden numsan_file_${name}_end\nnumsan_file_${name}_end:\n    .byte 0\n")
    string(APPEND declarations "extern \"C\" const char numsan_file_${name}[], numsan_file_${name}_end[];\n"
           "inline std::string_view file_${name}() {\n    return {numsan_file_${name}, "
           "static_cast<size_t>(numsan_file_${name}_end - numsan_file_${name})};\n}\n\n")
  endforeach()
  string(APPEND assembly "    .section .note.GNU-stack,\"\",%progbits\n")
  set(source ${CMAKE_BINARY_DIR}/generated/${target}_files.S)
  file(CONFIGURE OUTPUT ${source} CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${header} @ONLY CONTENT
       "// Files that are part of the program; see scripts/cmake/embed_files.cmake.\n#pragma once\n
#include <cstddef>\n#include <string_view>\n\nnamespace numsan {\n\n${declarations}}  // namespace numsan\n")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${paths}")
  target_sources(${target} PRIVATE ${source})
endfunction()
