// The fatbin as bytes of the library.
    .section .rodata
    .balign 64
    .globl numsan_scan_fatbin
    .hidden numsan_scan_fatbin
    .type numsan_scan_fatbin, %object
numsan_scan_fatbin:
    .incbin NUMSAN_FATBIN
numsan_scan_fatbin_finish:
    .size numsan_scan_fatbin, numsan_scan_fatbin_finish - numsan_scan_fatbin
    .balign 8
    .globl numsan_scan_fatbin_size
    .hidden numsan_scan_fatbin_size
    .type numsan_scan_fatbin_size, %object
numsan_scan_fatbin_size:
    .quad numsan_scan_fatbin_finish - numsan_scan_fatbin
    .size numsan_scan_fatbin_size, 8
    .section .note.GNU-stack,"",%progbits
