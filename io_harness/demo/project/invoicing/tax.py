"""Value-added tax, rounded per line."""

from __future__ import annotations

from dataclasses import dataclass

from .money import Money


@dataclass(frozen=True, order=True)
class Rate:
    """A tax rate in tenths of a percent, so that 5.5 % is exact."""

    permille: int

    @classmethod
    def percent(cls, text: str) -> Rate:
        """Read a rate like `19` or `5.5`."""
        whole, _, tenth = text.partition(".")
        return cls(int(whole) * 10 + int(tenth or 0))

    def __str__(self) -> str:
        return f"{self.permille / 10:g} %"


def tax_on(net: Money, rate: Rate) -> Money:
    """Tax on a net amount, rounded commercially to the cent."""
    exact = net.cents * rate.permille  # thousandths of a cent
    return Money((exact + 500) // 1000, net.currency)
