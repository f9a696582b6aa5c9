// Loaded into the program before its first line: notes every function that is used, once, in the order of first use.
//
// TRACE_FUNCTIONS names a file with the addresses of all functions, one in hexadecimal on each line; TRACE_USED the file
// that the addresses of those that were used are added to, eight bytes each. A breakpoint lies on the first byte of each
// function, and whoever meets it puts the byte back.
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { BREAKPOINT = 0xcc, PAGE = 4096 };

static unsigned char *start;           // where the program lies in memory
static unsigned char *before;          // its bytes without breakpoints, from `first` on
static unsigned long first, last;      // the least and the greatest address of a function
static int used;

static int find_program(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    start = (unsigned char *)info->dlpi_addr;
    return 1; // the program is named first
}

static void meet(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *next = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    unsigned long address = (unsigned char *)*next - 1 - start;
    if (address < first || address > last)
        abort();
    start[address] = before[address - first];
    *next -= 1;
    if (write(used, &address, sizeof address) != sizeof address)
        abort();
}

static void fail(const char *what) {
    perror(what);
    abort();
}

__attribute__((constructor)) static void lay_breakpoints(void) {
    FILE *functions = fopen(getenv("TRACE_FUNCTIONS"), "r");
    used = open(getenv("TRACE_USED"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (!functions || used < 0)
        fail("trace");
    unsetenv("LD_PRELOAD"); // what the program starts is not traced
    dl_iterate_phdr(find_program, NULL);

    unsigned long address, count = 0, room = 0, *all = NULL;
    while (fscanf(functions, "%lx", &address) == 1) {
        if (count == room && !(all = realloc(all, (room = 2 * room + 1024) * sizeof *all)))
            fail("realloc");
        all[count++] = address;
        first = count == 1 || address < first ? address : first;
        last = address > last ? address : last;
    }
    fclose(functions);

    struct sigaction action = {.sa_sigaction = meet, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigaction(SIGTRAP, &action, NULL);
    unsigned char *from = start + first - (unsigned long)(start + first) % PAGE;
    if (!(before = malloc(last - first + 1)) || mprotect(from, start + last + 1 - from, PROT_READ | PROT_WRITE | PROT_EXEC))
        fail("mprotect");
    memcpy(before, start + first, last - first + 1);
    while (count > 0)
        start[all[--count]] = BREAKPOINT;
    free(all);
}
