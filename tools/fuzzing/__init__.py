"""Random programs, run by rushlight and by PyTorch in one process, compared and shrunk.

``program`` draws and runs one side, ``observing`` says what is looked at, ``comparing`` holds two sides against each
other, ``shrinking`` makes what differs small, ``pool`` runs many programs in worker processes.  ``kinds`` has one file
for each family of programs.
"""
