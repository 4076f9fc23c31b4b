"""Amounts of money in whole cents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WRITTEN = re.compile(r"(?P<sign>-?)(?P<units>\d+)(?:\.(?P<cents>\d{2}))?")


@dataclass(frozen=True, order=True)
class Money:
    """An amount in one currency. Negative amounts are owed back."""

    cents: int
    currency: str = "EUR"

    @classmethod
    def parse(cls, text: str, currency: str = "EUR") -> Money:
        """Read an amount like `12`, `12.34` or `-0.05`."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"not an amount: {text!r} (write it like 12.34)")
        cents = int(found["units"]) * 100 + int(found["cents"] or 0)
        return cls(-cents if found["sign"] else cents, currency)

    def __str__(self) -> str:
        units, cents = divmod(abs(self.cents), 100)
        return f"{'-' if self.cents < 0 else ''}{units}.{cents:02d} {self.currency}"

    def __neg__(self) -> Money:
        return Money(-self.cents, self.currency)

    def __add__(self, other: Money) -> Money:
        self._same_currency(other)
        return Money(self.cents + other.cents, self.currency)

    def __sub__(self, other: Money) -> Money:
        return self + -other

    def __mul__(self, factor: int) -> Money:
        return Money(self.cents * factor, self.currency)

    def allocate(self, weights: Sequence[int]) -> list[Money]:
        """Split the amount in proportion to `weights`.

        The parts add up to the whole. Cents that are left over go to the first parts.
        """
        total = sum(weights)
        if total <= 0 or min(weights) < 0:
            raise ValueError("weights must not be negative, and not all zero")
        parts = [self.cents * weight // total for weight in weights]
        left_over = self.cents - sum(parts)
        for index in range(left_over):
            parts[index] += 1
        return [Money(part, self.currency) for part in parts]

    def _same_currency(self, other: Money) -> None:
        if self.currency != other.currency:
            raise ValueError(f"can't mix {self.currency} and {other.currency}")


def total(amounts: Sequence[Money], currency: str = "EUR") -> Money:
    """The sum of amounts in one currency; zero for none."""
    result = Money(0, currency)
    for amount in amounts:
        result += amount
    return result
