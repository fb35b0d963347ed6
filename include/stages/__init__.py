"""The six stages of a release, each a function of plain values: what the operators call.

    load -> validate -> budget_eval -> synthesize -> quality_check -> publish

A stage may be called again at any time (retry, clear, backfill): it asks the ledger what has
happened already and returns the earlier answer. No stage knows Airflow, so each is tested without
a scheduler. Only `synthesize` lets anything that depends on rows out, and only after its charge
has been opened.
"""
