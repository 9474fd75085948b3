# Writes what the command says of itself to shells: FILES, below the current folder, of the manual, of bash and of zsh, in
# this order.
set(names man bash zsh)
foreach(file name IN ZIP_LISTS FILES names)
  get_filename_component(folder ${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${COMMAND} table ${name} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
