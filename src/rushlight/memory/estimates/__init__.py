"""What training will need, from shapes alone, before it runs."""
