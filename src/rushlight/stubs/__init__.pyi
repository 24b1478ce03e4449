"""Types of what is published while the package is imported."""
