"""Running operators: the record (`declare`), what it saves and runs backward (`plan`), one general way to run it (`call`) and
the fast forms of that, and what public functions share: arguments, options, named results. No operator is in here.
"""
