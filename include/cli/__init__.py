"""The command line: `python -m include.cli`, the same facts as the Airflow UI."""
