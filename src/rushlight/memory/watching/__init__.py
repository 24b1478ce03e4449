"""Memory while a program runs: samples of it, sent to whoever watches, and drawn there."""
