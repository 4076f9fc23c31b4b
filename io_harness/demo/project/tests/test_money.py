import unittest

from invoicing import Money
from invoicing.money import total


class ParseTest(unittest.TestCase):
    def test_amounts(self):
        self.assertEqual(Money.parse("12.34"), Money(1234))
        self.assertEqual(Money.parse("-0.05"), Money(-5))
        self.assertEqual(str(Money(-5)), "-0.05 EUR")

    def test_a_bad_amount_is_named(self):
        with self.assertRaisesRegex(ValueError, "12,34"):
            Money.parse("12,34")


class AllocateTest(unittest.TestCase):
    def test_no_cent_is_lost(self):
        for cents in range(-200, 200):
            self.assertEqual(total(Money(cents).allocate([3, 1, 7])), Money(cents))

    def test_left_over_cents_go_to_the_first_parts(self):
        self.assertEqual(Money(100).allocate([1, 1, 1]), [Money(34), Money(33), Money(33)])

    def test_a_credit_is_split_like_the_charge_that_it_cancels(self):
        charge = Money(100).allocate([1, 1, 1])
        credit = Money(-100).allocate([1, 1, 1])
        self.assertEqual(credit, [-part for part in charge])

    def test_weights_must_make_sense(self):
        with self.assertRaises(ValueError):
            Money(100).allocate([0, 0])
        with self.assertRaises(ValueError):
            Money(100).allocate([2, -1])
