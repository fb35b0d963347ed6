"""CuSyn: differentially private data synthesis with an audited budget; knows no Airflow."""

__version__ = "0.1.0"
