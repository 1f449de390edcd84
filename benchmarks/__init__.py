"""What things cost, beside a named peer: ``python -m benchmarks``."""
