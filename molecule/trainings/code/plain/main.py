"""A program that has never heard of this project: no TensorFlow, no flags, no lines of JSON."""

import random

random.seed(1)
inside = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(200_000))
estimate = 4 * inside / 200_000
print(f"pi is about {estimate:.3f}")
if abs(estimate - 3.1416) > 0.02:
    raise SystemExit("a bad generator")
