/* The seam to the operating system, as storage/platform/ is in Python: calls that not every POSIX
 * system has. Each has Linux's form and one for any other system. Where Linux's forms are hidden
 * (RMQCTL_POSIX=1), Python does not take the steps that use them.
 *
 * To be included first: what it needs is declared by this name.
 */
#ifndef RMQCTL_KERNEL_H
#define RMQCTL_KERNEL_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate, names of threads */
#endif
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#define CHANGED st_ctimespec
#else
#define CHANGED st_ctim
#endif

#ifdef __linux__
#include <sys/syscall.h>
enum { HAS_FUTEX = 1 };
enum { FUTEX_WAIT, FUTEX_WAKE }; /* the kernel's headers are not everywhere */
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37 /* as in storage/platform/file_locks.py */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* Wakes threads of all processes that sleep on a word of shared memory, ``most`` of them, those
 * first that have slept longest; how many there were. */
static inline long wake_sleepers(uint32_t *word, int most)
{
    const long woke = syscall(SYS_futex, word, FUTEX_WAKE, most, NULL, NULL, 0);
    return woke > 0 ? woke : 0;
}

/* Sleeps while the word is ``seen``. Whether the word was woken, as far as that is known: a signal
 * ends the sleep, too. */
static inline int sleep_while(uint32_t *word, uint32_t seen, int64_t timeout_us)
{
    const struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
    const long done = syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
    return done == 0 || errno != ETIMEDOUT;
}

/* Locks a byte of an open file, or unlocks it; whether it did. */
static inline int lock_byte(int fd, short kind, off_t byte)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Gives bytes of a file blocks; whether it did. */
static inline int reserve_blocks(int fd, off_t from, off_t size)
{
    return fallocate(fd, 0, from, size) == 0;
}

/* Whether a file has no data from a position on; no where that is not known. */
static inline int has_only_holes_from(int fd, off_t position)
{
    return lseek(fd, position, SEEK_DATA) < 0 && errno == ENXIO;
}

/* Makes the pages of a map as stores do, without changing bytes; whether it did. */
static inline int populate(void *at, size_t size, int are_large)
{
    if (are_large)
        madvise(at, size, MADV_HUGEPAGE); /* without huge pages small ones are made */
    while (madvise(at, size, MADV_POPULATE_WRITE) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return 0;
    return 1;
}

static inline void name_thread(pthread_t thread, const char *name)
{
    pthread_setname_np(thread, name);
}
#else /* nothing is woken, locked or made here: the callers' general steps do it */
enum { HAS_FUTEX = 0 };

static inline long wake_sleepers(uint32_t *word, int most)
{
    (void)word, (void)most;
    return 0;
}
static inline int sleep_while(uint32_t *word, uint32_t seen, int64_t timeout_us)
{
    (void)word, (void)seen, (void)timeout_us;
    return 1;
}
static inline int lock_byte(int fd, short kind, off_t byte)
{
    (void)fd, (void)kind, (void)byte;
    return 0;
}
static inline int reserve_blocks(int fd, off_t from, off_t size)
{
    (void)fd, (void)from, (void)size;
    return 0;
}
static inline int has_only_holes_from(int fd, off_t position)
{
    (void)fd, (void)position;
    return 0;
}
static inline int populate(void *at, size_t size, int are_large)
{
    (void)at, (void)size, (void)are_large;
    return 0;
}
static inline void name_thread(pthread_t thread, const char *name)
{
    (void)thread, (void)name;
}
#endif
#endif
