"""The privacy-budget ledger: who may learn how much, written down before the data are read.

Start at `ledger.Ledger` (the only writer) and `reader.LedgerReader`; `policy.decide` is the paper's
BudgetEval as a pure function; `verify`, `export` and `audit` serve an auditor.
"""
