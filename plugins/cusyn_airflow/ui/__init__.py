"""The pages of the Airflow UI: read-only, for whoever is logged in."""
