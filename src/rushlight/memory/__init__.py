"""Memory: see where it goes, record it, report it, bound it."""
