"""Rules that change the behaviour of the source, and callbacks of the source into its own pool."""

from typing import Literal

from hypothesis import strategies as some
from hypothesis.stateful import rule

from support.attempts import attempt
from support.pools.fickle import MOODS, Mood
from support.pools.pool_machine.arguments import ELSEWHERE, PLACES
from support.pools.pool_machine.freeing import Freeing
from support.pools.pool_model import GRANULE


class Callbacks(Freeing):
    """Sets the mood of the source, and makes the source use its own pool during a request."""

    @rule(mood=some.sampled_from(MOODS), more=some.integers(1, 100_000), elsewhere=ELSEWHERE)
    def ask_a_source_in_a_mood(self, mood: Mood, more: int, elsewhere: bool) -> None:
        self.fickle.mood = mood
        self.ask_for_more_than_fits(more, elsewhere)

    def ask_for_more_than_fits(self, more: int, elsewhere: bool) -> None:
        """Make a request that needs a new region from the source, if the limit allows one."""
        nbytes = self.pool.stats().largest_free + more
        self.request(nbytes, GRANULE, lambda: self.pool.malloc(nbytes), elsewhere)

    @rule(raises=some.booleans())
    def release_will_raise(self, raises: bool) -> None:
        self.fickle.release_raises = raises

    @rule(
        action=some.sampled_from(["free", "malloc", "forget", "collect", "trim", "close", "look"]),
        nbytes=some.integers(1, 100_000),
        which=PLACES,
        mood=some.sampled_from(["grant", "grant", "refuse", "less"]),
        elsewhere=ELSEWHERE,
    )
    def ask_a_source_that_uses_its_pool(
        self,
        action: Literal["free", "malloc", "forget", "collect", "trim", "close", "look"],
        nbytes: int,
        which: int,
        mood: Mood,
        elsewhere: bool,
    ) -> None:
        def run() -> None:
            self.callbacks += 1
            outcome = attempt(lambda: self.run_action(action, nbytes, which))
            if outcome.error is not None:
                self.callback_errors.append(outcome.error)

        self.fickle.callback, self.fickle.mood = run, mood
        self.ask_for_more_than_fits(nbytes, elsewhere)

    def run_action(self, action: str, nbytes: int, which: int) -> None:
        """Use the pool during a request: allowed actions succeed, the others raise a ``RuntimeError``."""
        if action == "free" and self.model.blocks:
            self.free(which, False)
        elif action == "forget" and self.objects:
            self.forget_an_object(which, "dies", False)
        elif action == "collect":
            self.collect_garbage(False)
        elif action == "look":
            self.can_allocate(nbytes, False)
        elif action == "malloc":
            outcome = attempt(lambda: self.pool.malloc(nbytes))
            if outcome.error is None:
                self.take(outcome.value, nbytes, GRANULE)
            else:
                assert type(outcome.error) is RuntimeError, outcome
                assert self.pool.stats().largest_free < nbytes
        elif action in ("trim", "close"):
            outcome = attempt(getattr(self.pool, action))
            assert type(outcome.error) is RuntimeError, outcome
            assert "its own pool" in str(outcome.error)
