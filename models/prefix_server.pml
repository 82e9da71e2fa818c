// SPDX-License-Identifier: Apache-2.0
/* Prefix server: desks, and the lock of the server's role. Section s uses desk s % DESKS after section s - DESKS has left
 * it; DESKS is smaller than in the code, so that desks are used again. */
#ifndef DESKS
#define DESKS 2
#endif
/* Sections of a worker whose aggregates are published and whose carries it has not fetched: up to 2. */
#ifndef WAITING
#define WAITING 2
#endif
#define free_for(s) ((s) % DESKS)              /* s + 1 */
#define published(s) (DESKS + (s) % DESKS)     /* s + 1, 0: nothing yet */
#define handed_out(s) (2 * DESKS + (s) % DESKS) /* s + 1, 0: nothing yet */
#define aggregate(s) (3 * DESKS + (s) % DESKS)
#define carry(s) (4 * DESKS + (s) % DESKS)
#define busy (5 * DESKS)
#define next_section (5 * DESKS + 1)
#define running (5 * DESKS + 2)
#define LOCATIONS (5 * DESKS + 3)
#define stop_here out

/* The orderings of the code, in its order. */
#ifndef PUBLISH_ACQUIRE
#define PUBLISH_ACQUIRE 1 /* free_for, read by the next owner of a desk */
#endif
#ifndef PUBLISH_RELEASE
#define PUBLISH_RELEASE 1 /* published, after the aggregates */
#endif
#ifndef FETCH_ACQUIRE
#define FETCH_ACQUIRE 1 /* handed_out, before the carry */
#endif
#ifndef FETCH_RELEASE
#define FETCH_RELEASE 1 /* free_for, after the carry has been read */
#endif
#ifndef LOCK_ACQUIRE
#define LOCK_ACQUIRE 1
#endif
#ifndef LOCK_RELEASE
#define LOCK_RELEASE 1
#endif
#ifndef SERVE_ACQUIRE
#define SERVE_ACQUIRE 1 /* published, before the aggregates */
#endif
#ifndef SERVE_RELEASE
#define SERVE_RELEASE 1 /* handed_out, after the carry and after the aggregates have been read */
#endif

#ifndef SECTIONS
#define SECTIONS 3
#endif
#include "memory.pml"

byte to_serve; /* not in the code: the true next section */
/* A server that finds nobody waiting changes nothing, so only useful attempts are made. */
#define useful (to_serve < SECTIONS && memory[published(to_serve)] == to_serve + 1 && memory[busy] == 0)

inline publish(s) {
#if PUBLISH_ACQUIRE
    wait(memory[free_for(s)] == s + 1);
    store(aggregate(s), s + 1);
#else
    store(aggregate(s), s + 1);
    wait(memory[free_for(s)] == s + 1);
#endif
    store_flag(published(s), s + 1, PUBLISH_RELEASE)
}

inline serve() {
#if !LOCK_ACQUIRE
    load(next_section, n); load(running, r); /* performed early */
#endif
    if
    :: memory[busy] == 1 /* somebody else serves */
    :: atomic { memory[busy] == 0 -> memory[busy] = 1 };
#if LOCK_ACQUIRE
       load(next_section, n); load(running, r);
#endif
       do
       :: n == SECTIONS -> break
       :: n < SECTIONS ->
#if !SERVE_ACQUIRE
          load(aggregate(n), a); /* performed early */
#endif
          if
          :: memory[published(n)] != n + 1 -> break
          :: memory[published(n)] == n + 1
          fi;
#if SERVE_ACQUIRE
          load(aggregate(n), a);
#endif
          store(carry(n), r);
#if !FETCH_ACQUIRE
          c = (n == held -> r : c); /* a load is never performed before the worker's own store to the same place */
#endif
          if
          :: true
#ifdef THROWS
          :: atomic { !stopped -> stopped = true } -> store_flag(busy, 0, LOCK_RELEASE); goto out
#endif
          fi;
          atomic { r = fold(r, a); a = 0 }
          store(running, r);
          store_flag(handed_out(n), n + 1, SERVE_RELEASE);
          atomic { n++; to_serve = n }
          store(next_section, n)
       od;
       store_flag(busy, 0, LOCK_RELEASE)
    fi;
    n = 0; r = 0; a = 0
}

inline fetch(s) {
#if !FETCH_ACQUIRE
    load(carry(s), c); /* performed early */
#endif
    do
    :: memory[handed_out(s)] == s + 1 -> break
    :: useful -> serve()
    :: others_stopped -> goto out
    od;
#if FETCH_RELEASE
#if FETCH_ACQUIRE
    load(carry(s), c);
#endif
    store_flag(free_for(s), s + DESKS + 1, 1)
#else
    store_flag(free_for(s), s + DESKS + 1, 0);
    load(carry(s), c) /* performed late */
#endif
}

inline fetch_oldest() {
    fetch(held);
    assert(c == held + 1);
    c = 0;
    finished++;
    count--;
    held = (count > 0 -> second : 0);
    second = 0
}
inline fetch_all() {
    do
    :: count > 0 -> fetch_oldest()
    :: else -> break
    od
}

proctype worker(byte me) {
    byte held, second, count; /* sections that wait: `held` is the oldest */
    byte next, following, c, n, r, a;
    take(next);
    do
    :: next == SECTIONS -> break
    :: else ->
       take(following);
       if
       :: count == WAITING -> fetch_oldest()
       :: else
       fi;
       may_throw;
#ifndef WAITS_FOR_ITSELF
       if
       :: memory[free_for(next)] != next + 1 -> fetch_all()
       :: else
       fi;
#endif
       publish(next);
       if
       :: count == 0 -> held = next
       :: else -> second = next
       fi;
       count++;
       next = following
    od;
    fetch_all();
out:
    left++
}

init {
    byte desk;
    atomic {
        for (desk : 0 .. DESKS - 1) { memory[free_for(desk)] = desk + 1 }
        desk = 0;
        memory[running] = 1
    }
    run_all()
}
