"""Trainings as cluster objects: submitting, following and judging them."""
