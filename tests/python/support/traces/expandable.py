"""Reference implementation of PyTorch's expandable segments, slow and simple, to compare the model in Rust with.

A segment is a list of cells; every request looks at all of them.
"""

from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass
class Cell:
    """A cell of an expandable segment; `owner` is the name of the block that it belongs to."""

    owner: int | None = None
    mapped: bool = False


#: Bytes of a cell of an expandable segment: tests use sizes that are multiples of it.
CELL = MIB // 2


@dataclass
class Range:
    """An expandable segment as a list of cells."""

    small: bool
    stream: int
    cells: list[Cell]

    @property
    def page(self) -> int:
        """Cells of a page."""
        return (2 if self.small else 20) * MIB // CELL

    def runs(self, free: str) -> list[tuple[int, int]]:
        """Return runs of free cells as (first, length): of `mapped` ones, or of all."""
        found: list[tuple[int, int]] = []
        start = None
        for place, cell in enumerate([*self.cells, Cell(owner=-1)]):
            fits = cell.owner is None and (free == "all" or cell.mapped)
            if fits and start is None:
                start = place
            elif not fits and start is not None:
                found.append((start, place - start))
                start = None
        return found


@dataclass
class Expandable:
    """PyTorch's allocator with expandable segments, cell by cell. Requests are multiples of a cell."""

    limit: int
    ranges: list[Range] = field(default_factory=list)
    peak_reserved: int = 0

    @property
    def reserved(self) -> int:
        return CELL * sum(cell.mapped for one in self.ranges for cell in one.cells)

    @property
    def segments(self) -> int:
        """Number of ranges that are mapped without a gap."""
        return sum(
            cell.mapped and (place == 0 or not one.cells[place - 1].mapped)
            for one in self.ranges
            for place, cell in enumerate(one.cells)
        )

    def allocate(self, name: int, nbytes: int, stream: int) -> bool:
        small, length = nbytes <= MIB, nbytes // CELL
        place = self._fit(length, small, stream) or self._expand(length, small, stream)
        if place is None:
            self._unmap()
            place = self._expand(length, small, stream)
        if place is None:
            return False
        one, start = place
        for cell in one.cells[start : start + length]:
            cell.owner = name
        return True

    def free(self, name: int) -> None:
        for one in self.ranges:
            for cell in one.cells:
                if cell.owner == name:
                    cell.owner = None

    def _fit(self, length: int, small: bool, stream: int) -> tuple[Range, int] | None:
        """Return the best fit: in order of size, as long as the size with unmapped cells behind it falls."""
        found = sorted(
            (run, number, start)
            for number, one in enumerate(self.ranges)
            if (one.small, one.stream) == (small, stream)
            for start, run in one.runs("mapped")
            if run >= length
        )
        if not found:
            return None
        best = found[0]
        for other in found[1:]:
            if self._expanded(other) >= self._expanded(best):
                break
            best = other
        return self.ranges[best[1]], best[2]

    def _expanded(self, found: tuple[int, int, int]) -> int:
        run, number, start = found
        cells = self.ranges[number].cells
        end = start + run
        while end < len(cells) and not cells[end].mapped:
            end += 1
        return end - start

    def _expand(self, length: int, small: bool, stream: int) -> tuple[Range, int] | None:
        """Map the pages that a request needs from the lowest unmapped cells with enough free ones behind them on."""
        for one in self.ranges:
            if (one.small, one.stream) != (small, stream):
                continue
            for start, run in one.runs("all"):
                # Candidates: the first cell of a run of unmapped ones, or of the free ones right before it.
                for first, end in self._candidates(one, start, start + run):
                    if end - first >= length:
                        return self._map(one, first, length)
        one = Range(small, stream, [])
        total = self.limit + self.limit // 8
        one.cells = [Cell() for _ in range(-(-total // (one.page * CELL)) * one.page)]
        if len(one.cells) < length:
            return None
        self.ranges.append(one)
        return self._map(one, 0, length)

    @staticmethod
    def _candidates(one: Range, start: int, end: int) -> list[tuple[int, int]]:
        groups: list[int] = [
            place
            for place in range(start, end)
            if place == start or one.cells[place].mapped != one.cells[place - 1].mapped
        ]
        return [
            (groups[number - 1] if number else place, end)
            for number, place in enumerate(groups)
            if not one.cells[place].mapped
        ]

    def _map(self, one: Range, first: int, length: int) -> tuple[Range, int] | None:
        place = first
        while place < first + length:
            if one.cells[place].mapped:
                place += 1
                continue
            # A run of unmapped cells is mapped at once, in whole pages, or not at all.
            run = place
            while run < first + length and not one.cells[run].mapped:
                run += 1
            pages = -(-(run - place) // one.page)
            if self.reserved + pages * one.page * CELL > self.limit:
                return None
            for cell in one.cells[place : place + pages * one.page]:
                cell.mapped = True
            self.peak_reserved = max(self.peak_reserved, self.reserved)
            place = run
        return one, first

    def _unmap(self) -> None:
        for one in self.ranges:
            for start in range(0, len(one.cells), one.page):
                page = one.cells[start : start + one.page]
                if all(cell.owner is None for cell in page):
                    for cell in page:
                        cell.mapped = False
