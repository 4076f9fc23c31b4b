import unittest

from invoicing import Invoice, Line, Money, Rate, tax_on

STANDARD = Rate.percent("19")
REDUCED = Rate.percent("7")


def invoice() -> Invoice:
    return Invoice(
        "2026-0117",
        [
            Line("shelf board", 3, Money.parse("24.90"), STANDARD),
            Line("bracket", 1, Money.parse("2.50"), STANDARD),
            Line("handbook", 1, Money.parse("19.95"), REDUCED),
        ],
        discount=Money.parse("5.00"),
    )


class TaxTest(unittest.TestCase):
    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(tax_on(Money.parse("2.50"), STANDARD), Money.parse("0.48"))

    def test_rates_may_have_tenths(self):
        self.assertEqual(tax_on(Money.parse("100"), Rate.percent("5.5")), Money.parse("5.50"))


class InvoiceTest(unittest.TestCase):
    def test_the_discount_is_spread_over_the_lines(self):
        self.assertEqual(invoice().net(), Money.parse("92.15"))

    def test_tax_is_summed_by_rate(self):
        taxes = invoice().tax_by_rate()
        self.assertEqual(list(taxes), [REDUCED, STANDARD])


class CreditNoteTest(unittest.TestCase):
    def test_it_cancels_a_discounted_invoice(self):
        credit = invoice().cancel("2026-0118")
        self.assertEqual(credit.gross(), -invoice().gross())

    def test_it_cancels_every_line(self):
        single = Invoice("2026-0119", [Line("bracket", 1, Money.parse("2.50"), STANDARD)])
        for before, after in zip(single.billed(), single.cancel("2026-0120").billed()):
            self.assertEqual(after.tax, -before.tax)
            self.assertEqual(after.gross, -before.gross)

    def test_it_names_the_invoice(self):
        self.assertEqual(invoice().cancel("2026-0118").cancels, "2026-0117")
