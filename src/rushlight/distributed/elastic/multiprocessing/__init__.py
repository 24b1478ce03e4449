"""``torch.distributed.elastic.multiprocessing``: of several processes; only the names of their errors are here."""
