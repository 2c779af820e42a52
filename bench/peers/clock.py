"""Time training steps as bench/step does: median times, the first step, and the memory."""

import resource
import statistics
import time


class Clock:
    def __init__(self):
        self.ends, self.cpu = [], []

    def tick(self):
        """Record the end of a step."""
        self.ends.append(time.time())
        self.cpu.append(time.process_time())

    def figures(self, inputs, warm_up):
        """Return the figures of the steps after the warm-up, each with as many inputs."""
        median = lambda times: 1e3 * statistics.median(b - a for a, b in zip(times[warm_up - 1:], times[warm_up:]))
        milliseconds = median(self.ends)
        return {
            "images_per_second": 1e3 * inputs / milliseconds,
            "ms_per_step": milliseconds,
            "cpu_ms_per_step": median(self.cpu),
            "first_step_at": self.ends[0],
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
