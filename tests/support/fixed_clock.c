/* Preloaded into a program: the time of day stands still at FIXED_NOW_MS, in milliseconds since
   1970. Clocks that measure durations go on. */
#define _GNU_SOURCE
#include <stdlib.h>
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
