/* dlopen as seen by the program: asks numsan_dlopen_target where to go and jumps there, with arguments, stack and
 * return address as the caller left them. glibc reads that address to find the caller's RUNPATH: a C wrapper would put
 * its own. */
#if defined(__x86_64__)
    .text
    .p2align 4
    .globl dlopen
    .type dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp                   /* 16-byte alignment at the call */
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx             /* third argument: the return address */
    call numsan_dlopen_target
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlopen, .-dlopen
    .hidden numsan_dlopen_target

#elif defined(__aarch64__)
    .text
    .p2align 4
    .globl dlopen
    .type dlopen, %function
dlopen:
    .cfi_startproc
    hint #34                        /* bti c; a no-op where there is none */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x2, x30                     /* third argument: the return address */
    bl numsan_dlopen_target
    mov x16, x0                     /* x16: the register a bti c target may be branched to with */
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    br x16
    .cfi_endproc
    .size dlopen, .-dlopen
    .hidden numsan_dlopen_target

#else
#error "numsan_preload: no dlopen trampoline for this processor"
#endif
    .section .note.GNU-stack, "", %progbits
