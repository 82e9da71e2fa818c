// SPDX-License-Identifier: Apache-2.0
/* Prefix server on a GPU: the block that draws ticket 0 has a warp that does nothing else than serve. Tiles have cells of
 * their own, so nothing is used twice and there is no lock. A block draws its next ticket while it waits for a carry. */
#ifndef SECTIONS
#define SECTIONS 3
#endif
#define LOCATIONS (4 * SECTIONS)
#define aggregate_status(t) (t)
#define carry_status(t) (SECTIONS + (t))
#define aggregate(t) (2 * SECTIONS + (t))
#define carry(t) (3 * SECTIONS + (t))
#define stop_here out
#define BUFFERS (WORKERS + 1) /* the server's warp has its own */

/* The orderings of published.cuh's record, at its two uses. */
#ifndef AGGREGATE_RELEASE
#define AGGREGATE_RELEASE 1
#endif
#ifndef AGGREGATE_ACQUIRE
#define AGGREGATE_ACQUIRE 1
#endif
#ifndef CARRY_RELEASE
#define CARRY_RELEASE 1
#endif
#ifndef CARRY_ACQUIRE
#define CARRY_ACQUIRE 1
#endif

#include "memory.pml"

proctype server(byte me) {
    byte n, a, running = 1;
    do
    :: n == SECTIONS - 1 -> break /* nobody needs the last aggregate */
    :: else ->
#if AGGREGATE_ACQUIRE
       wait(memory[aggregate_status(n)] == 1);
       load(aggregate(n), a);
#else
       load(aggregate(n), a); /* performed early */
       wait(memory[aggregate_status(n)] == 1);
#endif
       running = fold(running, a);
       n++;
       store(carry(n), running);
       store_flag(carry_status(n), 1, CARRY_RELEASE)
    od;
out:
    skip
}

proctype worker(byte me) {
    byte t, next, c;
    take(t);
    if
    :: t == 0 -> run server(WORKERS)
    :: else
    fi;
    do
    :: t == SECTIONS -> break
    :: else ->
       if
       :: t + 1 < SECTIONS ->
          store(aggregate(t), t + 1);
          store_flag(aggregate_status(t), 1, AGGREGATE_RELEASE)
       :: else
       fi;
       take(next);
       if
       :: t == 0 -> c = 1
       :: else ->
#if CARRY_ACQUIRE
          wait(memory[carry_status(t)] == 1);
          load(carry(t), c)
#else
          load(carry(t), c); /* performed early */
          wait(memory[carry_status(t)] == 1)
#endif
       fi;
       assert(c == t + 1);
       c = 0;
       finished++;
       t = next
    od;
out:
    left++
}

init { run_all() }
