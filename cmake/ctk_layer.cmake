# ctk_layer(NAME DEPS...): a static library ctk_NAME from every .cpp of the current folder (not of sub-folders that
# carry a CMakeLists.txt of their own), with the flags all our code shares.
function(ctk_flags target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  # Contraction to FMA would make float results depend on the compiler's mood; kernels ask for FMA by intrinsic.
  # GCC 12 sees overlaps that are not there in sums of std::string (its bug 105651), hence -Wno-restrict.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-restrict -ffp-contract=off -fno-math-errno)
  if(CTK_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(ctk_layer name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE nested RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(other ${nested})
    get_filename_component(folder ${other} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(ctk_${name} STATIC ${sources})
  ctk_flags(ctk_${name})
  target_link_libraries(ctk_${name} PUBLIC ${ARGN})
endfunction()
