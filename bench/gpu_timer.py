"""bench/gpu_timer.py: times calls on a GPU: warm-ups, a rest, a queue filled behind a spinning kernel, an event pair a call."""
import statistics
import time

import torch

WARM_UPS = 10
CALLS = 30
REST_SECONDS = 0.2
SPIN_CYCLES_A_CALL = 400_000  # 0.2 ms: longer than the host needs to launch one


def median_ms(call, warm_ups=WARM_UPS, calls=CALLS):
    """The median of `calls` calls on torch's current stream, in ms."""
    for _ in range(warm_ups):
        call()
    torch.cuda.synchronize()
    time.sleep(REST_SECONDS)
    begins, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(calls)] for _ in range(2))
    spun = torch.cuda.Event()
    torch.cuda._sleep(SPIN_CYCLES_A_CALL * calls)
    spun.record()
    for begin, end in zip(begins, ends):
        begin.record()
        call()
        end.record()
    filled = not spun.query()
    torch.cuda.synchronize()
    median_ms.launched_late += not filled
    return statistics.median(begin.elapsed_time(end) for begin, end in zip(begins, ends))


median_ms.launched_late = 0  # how often the spin ended before the last launch: those times hold gaps
