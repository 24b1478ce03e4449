"""``torch.distributed.elastic``: what a script names of the program that restarts failed processes."""
