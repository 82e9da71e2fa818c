#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The roles of the CUDA backend's pipeline (grid/prefix_pipeline.cuh) against each other, under random schedules; and
blocks of one tile each (grid/few_tiles.cuh).

Each role is a generator that yields the condition that it waits for; between two yields it runs undisturbed. Barriers
count arrivals and tell phases apart by parity alone, as those in shared memory do. Every schedule must scan every tile
exactly once, hand over what belongs together, and end, with any number of resident blocks, whichever start first. Then
each wait is left out in turn, or a tile is not drawn (a mutant), and some schedule must go wrong.

    pipeline_protocol_test.py [SCHEDULES [MUTANT]]
"""
import random
import sys

GROUP = 4  # tiles that the server folds at once (32 in the kernel)
GATHERERS = 3


class Wrong(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Wrong(what)


class Barrier:
    def __init__(self, arrivals):
        self.arrivals = self.missing = arrivals
        self.phase = 0

    def arrive(self):
        self.missing -= 1
        expect(self.missing >= 0, "an arrival too many")
        if self.missing == 0:
            self.phase += 1
            self.missing = self.arrivals

    def ended(self, parity):
        return (self.phase & 1) != parity


class Ring:
    def __init__(self, places, first=0):
        self.places, self.at, self.parity = places, first, 0

    def advance(self, by=1):
        self.at += by
        if self.at >= self.places:
            self.at, self.parity = self.at - self.places, self.parity ^ 1


class Grid:
    def __init__(self, rng, mutant):
        self.mutant = mutant
        self.blocks = rng.choice([1, 1, 2, 3, 5])
        self.tiles = rng.choice([0, 1, 2, 3, 5, 8, 13, 30, 60])
        self.stages = rng.choice([2, 3, 6])
        self.in_flight = rng.choice([2, 4])
        self.publishers = rng.choice([1, 2])  # they take tiles in turn
        self.early = rng.choice([0, 1])  # tuning::frees_stage_early
        self.each = rng.random() < 0.2  # few tiles: a block for each
        self.reducers, self.scanners = rng.choice([1, 2]), rng.choice([1, 2, 3])
        self.counter = 0
        self.aggregates, self.carries, self.stored = set(), set(), {}
        self.new_roles = []

    def wait(self, name, condition):
        """A condition to yield; always true in the mutant that leaves this wait out."""
        return (lambda: True) if self.mutant == name else condition

    def draw(self):
        self.counter += 1
        return self.counter - 1

    def block(self):
        stages = [{"tile": None, "reduced": Barrier(self.reducers), "placed": Barrier(1),
                   "freed": Barrier(self.scanners), "offsets": None} for _ in range(self.stages)]
        visits = [{"tile": None, "carry": None, "loaded": Barrier(1), "carried": Barrier(1)}
                  for _ in range(self.stages + self.early)]
        rings = lambda first=0: (Ring(self.stages, first), Ring(len(visits), first))

        def load():
            s, v = rings()
            flying, turn = Ring(len(visits)), 0
            mine = self.draw()
            serves = mine == 0 and self.blocks > 1
            if mine == 0:
                self.new_roles += self.server()
            while True:
                yield self.wait("load: freed", lambda: stages[s.at]["freed"].ended(s.parity ^ 1))
                if turn >= self.in_flight and self.in_flight < self.stages:
                    yield lambda: visits[flying.at]["loaded"].ended(flying.parity)
                    flying.advance()
                if turn > 0:
                    looks = 0
                    while serves and self.counter < self.tiles and looks < 40:  # leaves tiles to others
                        looks += 1
                        yield lambda: True
                    mine = self.draw()
                    yield lambda: True
                if mine >= self.tiles:
                    break
                visits[v.at]["tile"] = stages[s.at]["tile"] = mine
                yield lambda: True
                visits[v.at]["loaded"].arrive()
                s.advance()
                v.advance()
                turn += 1
            for k in range(len(visits)):
                if k >= self.early:
                    yield self.wait("load: freed at the end", lambda: stages[s.at]["freed"].ended(s.parity ^ 1))
                    s.advance()
                yield self.wait("load: carried at the end", lambda: visits[v.at]["carried"].ended(v.parity ^ 1))
                visits[v.at]["tile"] = mine
                visits[v.at]["loaded"].arrive()
                yield lambda: True
                v.advance()

        def reduce():
            s, v = rings()
            while True:
                yield self.wait("reduce: loaded", lambda: visits[v.at]["loaded"].ended(v.parity))
                tile = visits[v.at]["tile"]
                expect(tile is not None, "reduce: nothing was loaded")
                if tile >= self.tiles:
                    return
                expect(stages[s.at]["tile"] == tile, "reduce: another tile in the stage")
                yield lambda: True
                expect(stages[s.at]["tile"] == tile, "reduce: the tile was replaced")
                stages[s.at]["reduced"].arrive()
                s.advance()
                v.advance()

        def publish(me):
            s, v = rings(me)
            while True:
                yield lambda: visits[v.at]["loaded"].ended(v.parity)
                tile = visits[v.at]["tile"]
                if tile >= self.tiles:
                    return
                phase = stages[s.at]["reduced"].phase
                yield self.wait("publish: reduced", lambda: stages[s.at]["reduced"].ended(s.parity))
                expect(self.mutant != "publish: reduced" or stages[s.at]["reduced"].phase != phase or
                       stages[s.at]["reduced"].ended(s.parity), "publish: totals are missing")
                expect(stages[s.at]["tile"] == tile, "publish: another tile in the stage")
                self.aggregates.add(tile)
                stages[s.at]["offsets"] = tile
                yield lambda: True
                stages[s.at]["placed"].arrive()
                s.advance(self.publishers)
                v.advance(self.publishers)

        def fetch(lane):
            parity = 0
            while True:
                yield lambda: visits[lane]["loaded"].ended(parity)
                tile = visits[lane]["tile"]
                if tile >= self.tiles:
                    return
                yield self.wait("fetch: the carry's cell", lambda: tile == 0 or tile in self.carries)
                expect(tile == 0 or tile in self.carries, "fetch: no carry")
                visits[lane]["carry"] = tile
                visits[lane]["carried"].arrive()
                parity ^= 1

        def scan(me):
            s, v = rings()
            while True:
                yield self.wait("scan: loaded", lambda: visits[v.at]["loaded"].ended(v.parity))
                tile = visits[v.at]["tile"]
                expect(tile is not None, "scan: nothing was loaded")
                if tile >= self.tiles:
                    return
                yield self.wait("scan: placed", lambda: stages[s.at]["placed"].ended(s.parity))
                expect(stages[s.at]["tile"] == tile, "scan: another tile in the stage")
                expect(stages[s.at]["offsets"] == tile, "scan: offsets of another tile")
                yield lambda: True
                if self.early:
                    stages[s.at]["freed"].arrive()
                yield self.wait("scan: carried", lambda: visits[v.at]["carried"].ended(v.parity))
                expect(visits[v.at]["carry"] == tile, "scan: the carry of another tile")
                if not self.early:
                    expect(stages[s.at]["tile"] == tile, "scan: the tile was replaced")
                    stages[s.at]["freed"].arrive()
                yield lambda: True
                self.stored.setdefault(tile, []).append(me)
                s.advance()
                v.advance()

        return ([load()] + [publish(k) for k in range(self.publishers)] + [reduce() for _ in range(self.reducers)] +
                [fetch(lane) for lane in range(len(visits))] + [scan(k) for k in range(self.scanners)])

    def block_of_one(self, index):
        """All that waits in a block of grid/few_tiles.cuh."""
        tile = index if self.mutant == "few tiles: drawn" else self.draw()
        yield lambda: True
        self.aggregates.add(tile)
        before = lambda: all(t in self.aggregates for t in range(tile))
        yield self.wait("few tiles: the cells before", before)
        expect(before(), "few tiles: an aggregate is missing")
        self.stored[tile] = list(range(self.scanners))

    def server(self):
        needed = self.tiles - 1
        groups = [{"first": None, "before": None, "filled": Barrier(1), "reached": Barrier(1), "folded": Barrier(1),
                   "done": 0} for _ in range(GATHERERS)]

        def gather(me):
            mine, parity = groups[me], 0
            for first in range(me * GROUP, needed, GATHERERS * GROUP):
                size = min(GROUP, needed - first)
                yield self.wait("gather: the aggregates' cells",
                                lambda: all(first + i in self.aggregates for i in range(size)))
                expect(all(first + i in self.aggregates for i in range(size)), "gather: an aggregate is missing")
                mine["first"] = first
                mine["filled"].arrive()
                yield self.wait("gather: reached", lambda: mine["reached"].ended(parity))
                expect(mine["before"] == first, "gather: the sum before another group")
                for i in range(mine["done"], size):
                    self.carries.add(first + i + 1)
                    yield lambda: True
                yield self.wait("gather: folded", lambda: mine["folded"].ended(parity))
                parity ^= 1

        def fold():
            turn, parity = 0, 0
            for first in range(0, needed, GROUP):
                size, done, mine = min(GROUP, needed - first), 0, groups[turn]
                while self.mutant != "fold: filled" and not mine["filled"].ended(parity):
                    reached = 0
                    while self.mutant != "fold: parts" and reached < size and first + reached in self.aggregates:
                        reached += 1
                    while done < reached:
                        done += 1
                        self.carries.add(first + done)
                    yield lambda: True
                mine["before"], mine["done"] = first, done
                mine["reached"].arrive()
                for _ in range(size):
                    yield lambda: True
                    expect(mine["first"] == first, "fold: another group's aggregates")
                mine["folded"].arrive()
                turn += 1
                if turn == GATHERERS:
                    turn, parity = 0, parity ^ 1
                yield lambda: True

        return [gather(me) for me in range(GATHERERS)] + [fold()]


def run(seed, mutant):
    """What went wrong under this schedule, or None."""
    rng = random.Random(seed)
    grid = Grid(rng, mutant)
    if grid.each:
        waiting = [[grid.block_of_one(tile)] for tile in range(grid.tiles)]
        rng.shuffle(waiting)
    else:
        waiting = [grid.block() for _ in range(grid.blocks)]
    live, conditions = [], {}

    def add(role):
        try:
            conditions[id(role)] = next(role)
            live.append(role)
        except StopIteration:
            pass

    try:
        for _ in range(rng.randint(1, grid.blocks)):  # others start when these have ended
            for role in waiting.pop() if waiting else []:
                add(role)
        idle = 0
        while live or waiting:
            for role in grid.new_roles:
                add(role)
            grid.new_roles.clear()
            if not live or grid.each and len(live) < grid.blocks and waiting:
                for role in waiting.pop():
                    add(role)
                continue
            ready = [role for role in live if conditions[id(role)]()]
            if not ready:
                return "deadlock"
            role = rng.choice(ready)
            before = len(grid.stored), len(grid.carries), len(grid.aggregates), len(live)
            for _ in range(rng.choice([1, 1, 3, 20])):
                try:
                    conditions[id(role)] = next(role)
                except StopIteration:
                    live.remove(role)
                    break
                if not conditions[id(role)]():
                    break
            idle = idle + 1 if before == (len(grid.stored), len(grid.carries), len(grid.aggregates), len(live)) else 0
            if idle > 20000:
                return "nothing moves"
        for tile in range(grid.tiles):
            expect(sorted(grid.stored.get(tile, [])) == list(range(grid.scanners)), f"tile {tile} was not stored once")
    except Wrong as wrong:
        return str(wrong)
    return None


MUTANTS = ["load: freed", "load: freed at the end", "load: carried at the end", "reduce: loaded", "publish: reduced",
           "fetch: the carry's cell", "scan: loaded", "scan: placed", "scan: carried", "gather: the aggregates' cells",
           "gather: reached", "gather: folded", "fold: filled", "fold: parts", "few tiles: drawn", "few tiles: the cells before"]


def main():
    schedules = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    failures = [(seed, wrong) for seed in range(schedules) if (wrong := run(seed, None))]
    for seed, wrong in failures[:5]:
        print(f"ERROR: schedule {seed}: {wrong}")
    print(f"pipeline protocol: {schedules - len(failures)} of {schedules} schedules right")
    missed = []
    for mutant in MUTANTS if len(sys.argv) < 3 else sys.argv[2:]:
        found = next(((seed, wrong) for seed in range(schedules) if (wrong := run(seed, mutant))), None)
        if found is None:
            missed.append(mutant)
        print(f"without {mutant}: " + (f"schedule {found[0]}: {found[1]}" if found else "ERROR: nobody noticed"))
    return 1 if failures or missed else 0


if __name__ == "__main__":
    sys.exit(main())
