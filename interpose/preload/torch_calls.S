/* Three functions of torch, as every library of the process finds them: ours come first in the order of libraries. Each
 * jumps on to torch's own, or to what the adapter has put in its place, with arguments, stack and return address as the
 * caller left them. The first two are called for every operator and every record function. Callers outside of the torch
 * that we stand in for may belong to another one: where they go to is asked. */
#if defined(__x86_64__)
    .text
.macro BEGIN name
    .p2align 4
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    endbr64
.endm
.macro END name
    .cfi_endproc
    .size \name, .-\name
.endm

/* Jumps to the place that is named where the caller is that torch. */
.macro IF_TORCH_CALLS place
    movq (%rsp), %rax
    subq numsan_torch_begin(%rip), %rax
    cmpq numsan_torch_size(%rip), %rax
    jb \place
.endm
.macro ASK which
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    movl $\which, %edi
    movq 24(%rsp), %rdx             /* the return address; the second argument is as it was */
    call numsan_find_torch_call
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
.endm

/* std::optional<at::StepCallbacks> at::getStepCallbacksUnlessEmpty(at::RecordScope); scope 0 is an operator's */
BEGIN _ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE
    IF_TORCH_CALLS 1f
    ASK 0
1:  testb %sil, %sil
    jne 2f
    jmp *numsan_torch_own(%rip)
2:  jmp *numsan_torch_in_use(%rip)
END _ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE

/* at::StepCallbacks at::getStepCallbacks(at::RecordScope) */
BEGIN _ZN2at16getStepCallbacksENS_11RecordScopeE
    IF_TORCH_CALLS 1f
    ASK 1
1:  jmp *numsan_torch_in_use+8(%rip)
END _ZN2at16getStepCallbacksENS_11RecordScopeE

/* variable_list torch::autograd::AccumulateGrad::apply(variable_list&&) */
BEGIN _ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE
    IF_TORCH_CALLS 1f
    ASK 2
1:  jmp *numsan_torch_in_use+16(%rip)
END _ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE

    .hidden numsan_find_torch_call
    .hidden numsan_torch_begin
    .hidden numsan_torch_size
    .hidden numsan_torch_own
    .hidden numsan_torch_in_use
#endif
    .section .note.GNU-stack, "", %progbits
