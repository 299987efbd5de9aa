/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _XOPEN_SOURCE 700 /* setitimer; NOLINT(bugprone-reserved-identifier) */

#include "interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

static volatile sig_atomic_t raised;

static void raise_flag(int number)
{
    if (raised == 0) {
        raised = number;
    }
    if (number != SIGALRM) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
    }
}

static void watch(int number)
{
    struct sigaction old, new = {.sa_handler = raise_flag, .sa_flags = SA_RESTART};
    (void)sigemptyset(&new.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
        (void)sigaction(number, &new, NULL);
    }
}

static void start_timer(uint32_t ms)
{
    struct itimerval timer = {
        .it_value = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000}};
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

const volatile int *interrupt_watch(uint32_t time_limit_ms)
{
    raised = 0;
    watch(SIGINT);
    watch(SIGTERM);
    if (time_limit_ms > 0) {
        watch(SIGALRM);
        start_timer(time_limit_ms);
    }
    return &raised;
}

static void mask(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(how, &set, NULL);
}

void interrupt_hold(void)
{
    start_timer(0);
    mask(SIG_BLOCK);
}

void interrupt_release(void)
{
    mask(SIG_UNBLOCK);
}
