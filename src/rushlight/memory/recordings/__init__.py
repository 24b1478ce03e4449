"""Recordings: which blocks lived when, made by whom."""
