/* Preloaded into a program: the time of day stands still at FIXED_NOW_MS, in milliseconds since
   1970. Clocks that measure durations go on. Every file system is full to FIXED_DISK_PERCENT, if
   that is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long now_ms(void) { return atoll(getenv("FIXED_NOW_MS")); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = now_ms() / 1000;
    now->tv_nsec = now_ms() % 1000 * 1000000;
    return 0;
}

time_t time(time_t *now) {
    time_t seconds = now_ms() / 1000;
    if (now) *now = seconds;
    return seconds;
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    now->tv_sec = now_ms() / 1000;
    now->tv_usec = now_ms() % 1000 * 1000;
    return 0;
}

static void fix_disk(struct statvfs *found) {
    const char *percent = getenv("FIXED_DISK_PERCENT");
    if (!percent) return;
    found->f_frsize = found->f_bsize = 4096;
    found->f_blocks = 25600000; /* 98 GiB */
    found->f_bfree = found->f_bavail = found->f_blocks / 100 * (100 - atoll(percent));
}

int statvfs(const char *path, struct statvfs *found) {
    int (*real)(const char *, struct statvfs *) = dlsym(RTLD_NEXT, "statvfs");
    int failed = real(path, found);
    if (!failed) fix_disk(found);
    return failed;
}

int fstatvfs(int file, struct statvfs *found) {
    int (*real)(int, struct statvfs *) = dlsym(RTLD_NEXT, "fstatvfs");
    int failed = real(file, found);
    if (!failed) fix_disk(found);
    return failed;
}

int statvfs64(const char *path, struct statvfs64 *found) {
    return statvfs(path, (struct statvfs *)found); /* the same on 64 bits */
}

int fstatvfs64(int file, struct statvfs64 *found) {
    return fstatvfs(file, (struct statvfs *)found);
}
