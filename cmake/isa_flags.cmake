# Gives each kernel source the compiler flags its file stem stands for, and nothing else those flags.
set(CTK_ISA_FLAGS_x86_avx2 -mavx2 -mfma -mf16c)
set(CTK_ISA_FLAGS_x86_avxvnni -mavx2 -mfma -mf16c -mavxvnni)
# GCC 12 takes the undefined vectors inside its own intrinsics for ours (its bug 105593), hence -Wno-[maybe-]uninitialized.
set(CTK_ISA_FLAGS_x86_avx512vnni -Wno-uninitialized -Wno-maybe-uninitialized -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512)
set(CTK_ISA_FLAGS_arm_neondot -march=armv8.2-a+dotprod)

# ctk_isa_flags(TARGET): walks the target's sources; a file named <isa>.cpp or *_<isa>.cpp gets CTK_ISA_FLAGS_<isa>.
# On another processor family the file compiles to nothing (its contents are guarded by the architecture macro).
function(ctk_isa_flags target)
  get_target_property(sources ${target} SOURCES)
  set(isas)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(isas x86_avx2 x86_avxvnni x86_avx512vnni)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(isas arm_neondot)
  endif()
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    foreach(isa ${isas})
      if(stem MATCHES "${isa}$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${CTK_ISA_FLAGS_${isa}}")
      endif()
    endforeach()
  endforeach()
endfunction()
