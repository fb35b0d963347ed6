"""The bridge between Airflow and `include/`: hooks, operators, DAG factory, timetable, tables.

Everything that decides something about privacy stands in `include/`, which knows no Airflow. Here
an Airflow context becomes plain values, and plain values become task states and log lines.
"""
