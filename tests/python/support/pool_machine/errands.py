"""What the source is told to do."""

from typing import Literal

from hypothesis import strategies as some
from hypothesis.stateful import rule

from support.attempts import attempt
from support.fickle import MOODS, Mood
from support.pool_machine.arguments import ELSEWHERE, PLACES
from support.pool_machine.freeing import Freeing
from support.pool_model import GRANULE


class Errands(Freeing):
    """Moods of the source, and what it does to its own pool while it is asked."""

    @rule(mood=some.sampled_from(MOODS), more=some.integers(1, 100_000), elsewhere=ELSEWHERE)
    def ask_a_source_in_a_mood(self, mood: Mood, more: int, elsewhere: bool) -> None:
        self.fickle.mood = mood
        self.ask_for_more_than_fits(more, elsewhere)

    def ask_for_more_than_fits(self, more: int, elsewhere: bool) -> None:
        """A request that has to ask the source, if the limit leaves room for it."""
        nbytes = self.pool.stats().largest_free + more
        self.request(nbytes, GRANULE, lambda: self.pool.malloc(nbytes), elsewhere)

    @rule(raises=some.booleans())
    def release_will_raise(self, raises: bool) -> None:
        self.fickle.release_raises = raises

    @rule(
        errand=some.sampled_from(["free", "malloc", "forget", "collect", "trim", "close", "look"]),
        nbytes=some.integers(1, 100_000),
        which=PLACES,
        mood=some.sampled_from(["grant", "grant", "refuse", "less"]),
        elsewhere=ELSEWHERE,
    )
    def ask_a_source_with_an_errand(
        self,
        errand: Literal["free", "malloc", "forget", "collect", "trim", "close", "look"],
        nbytes: int,
        which: int,
        mood: Mood,
        elsewhere: bool,
    ) -> None:
        def run() -> None:
            self.errands += 1
            outcome = attempt(lambda: self.run_errand(errand, nbytes, which))
            if outcome.error is not None:
                self.errand_errors.append(outcome.error)

        self.fickle.errand, self.fickle.mood = run, mood
        self.ask_for_more_than_fits(nbytes, elsewhere)

    def run_errand(self, errand: str, nbytes: int, which: int) -> None:
        """What a source may do while it is asked, and what it may not."""
        if errand == "free" and self.model.blocks:
            self.free(which, False)
        elif errand == "forget" and self.objects:
            self.forget_an_object(which, "dies", False)
        elif errand == "collect":
            self.collect_garbage(False)
        elif errand == "look":
            self.can_allocate(nbytes, False)
        elif errand == "malloc":
            outcome = attempt(lambda: self.pool.malloc(nbytes))
            if outcome.error is None:
                self.take(outcome.value, nbytes, GRANULE)
            else:
                assert type(outcome.error) is RuntimeError, outcome
                assert self.pool.stats().largest_free < nbytes
        elif errand in ("trim", "close"):
            outcome = attempt(getattr(self.pool, errand))
            assert type(outcome.error) is RuntimeError, outcome
            assert "its own pool" in str(outcome.error)
