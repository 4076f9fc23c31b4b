"""Invoices, and the credit notes that cancel them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .money import Money, total
from .tax import Rate, tax_on


@dataclass(frozen=True)
class Line:
    """So many of one thing. A negative quantity gives it back."""

    what: str
    quantity: int
    price: Money
    rate: Rate

    @property
    def gross_of_discount(self) -> Money:
        return self.price * self.quantity


@dataclass(frozen=True)
class Billed:
    """A line as it is printed: its share of the discount taken off, and its tax."""

    line: Line
    net: Money
    tax: Money

    @property
    def gross(self) -> Money:
        return self.net + self.tax


@dataclass(frozen=True)
class Invoice:
    """Lines, and one discount over all of them."""

    number: str
    lines: Sequence[Line]
    discount: Money = field(default=Money(0))

    def billed(self) -> list[Billed]:
        """Every line with its share of the discount, in proportion to its amount."""
        weights = [abs(line.gross_of_discount.cents) for line in self.lines]
        shares = self.discount.allocate(weights)
        result = []
        for line, share in zip(self.lines, shares):
            net = line.gross_of_discount - share
            result.append(Billed(line, net, tax_on(net, line.rate)))
        return result

    def net(self) -> Money:
        return total([billed.net for billed in self.billed()])

    def gross(self) -> Money:
        return total([billed.gross for billed in self.billed()])

    def tax_by_rate(self) -> dict[Rate, Money]:
        """The tax summary that the law wants at the foot of an invoice."""
        result: dict[Rate, Money] = {}
        for billed in self.billed():
            rate = billed.line.rate
            result[rate] = result.get(rate, Money(0)) + billed.tax
        return dict(sorted(result.items()))

    def cancel(self, number: str) -> CreditNote:
        """The credit note that gives everything back, the discount included."""
        lines = [Line(l.what, -l.quantity, l.price, l.rate) for l in self.lines]
        return CreditNote(number, lines, -self.discount, cancels=self.number)


@dataclass(frozen=True)
class CreditNote(Invoice):
    """An invoice over negative amounts that names the one it cancels."""

    cancels: str = ""
