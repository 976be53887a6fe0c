"""Builders of small models, and references to compare them with."""
