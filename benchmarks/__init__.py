"""Measurements: each module is run by itself and prints a Markdown table."""
