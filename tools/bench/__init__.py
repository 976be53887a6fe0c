"""Workloads that every engine can run, side by side; docs/guide/speed.md says what each number means."""
