"""Invoices, discounts, tax and credit notes in whole cents."""

from .invoice import CreditNote, Invoice, Line
from .money import Money
from .tax import Rate, tax_on

__all__ = ["CreditNote", "Invoice", "Line", "Money", "Rate", "tax_on"]
