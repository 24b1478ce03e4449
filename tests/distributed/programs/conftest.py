"""What is here are programs, which are run and not imported."""

collect_ignore_glob = ["*.py"]
