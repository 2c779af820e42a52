"""What a user of submitit runs, as a new process: submitit_jobs.py ACTION FOLDER [ARGUMENT...]."""

import pathlib
import pickle
import sys
import time

import submitit
from submitit.slurm.slurm import SlurmJob


def work(seed):
    return seed


def report(lines, pause):
    for _ in range(lines):
        time.sleep(pause)
        print(time.time_ns(), flush=True)


def executor(folder, **options):
    e = submitit.AutoExecutor(folder=folder, cluster="slurm")
    e.update_parameters(timeout_min=10, **options)
    return e


def submit(folder, begin):
    e = executor(folder, nodes=2, slurm_additional_parameters={"begin": begin})
    print(e.submit(work, 1).job_id)


def array(folder, begin, n):
    e = executor(folder, slurm_array_parallelism=int(n), slurm_additional_parameters={"begin": begin})
    print(len(e.map_array(work, range(int(n)))))


def results(folder, n):
    """Writes what n jobs leave: every tenth has failed."""
    for i in range(int(n)):
        job = pathlib.Path(folder, str(i))
        job.mkdir(parents=True)
        result = ("error", "Traceback") if i % 10 == 0 else ("success", i)
        (job / f"{i}_0_result.pkl").write_bytes(pickle.dumps(result))


def jobs(folder):
    return [SlurmJob(f"{folder}/%j", path.name) for path in pathlib.Path(folder).iterdir()]


def done(folder):
    for job in jobs(folder):
        print(job.job_id, job.done())


def outcome(folder):
    """Also tells which jobs have failed."""
    for job in jobs(folder):
        print(job.job_id, job.exception())


def state(folder, *ids):
    for job in [SlurmJob(folder, i) for i in ids]:
        print(job.job_id, job.state)


def follow(folder, lines, pause, interval):
    job = executor(folder).submit(report, int(lines), float(pause))
    shown, last = 0, time.monotonic() + 60
    while shown < int(lines) and time.monotonic() < last:
        text = job.stdout() or ""
        whole = text[: text.rfind("\n") + 1].split()
        stamps = [word for word in whole if word.isdigit()]  # Not the messages of submitit itself.
        if stamps[shown:]:
            print("\n".join(stamps[shown:]), flush=True)
        shown = len(stamps)
        time.sleep(float(interval))


{f.__name__: f for f in (submit, array, results, done, outcome, state, follow)}[sys.argv[1]](*sys.argv[2:])
