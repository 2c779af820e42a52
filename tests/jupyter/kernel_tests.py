"""jupyter_kernel_test for Go kernels.

Usage: kernel_tests.py KERNEL

Prints one JSON object: {"name of a test": "ok" or the reason why it failed, or was skipped}.
"""

import json
import sys
import unittest

import jupyter_kernel_test as jkt
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (the kernels' ports)

# What comes at once on an idle machine may take minutes on a busy one.
LIMIT = 300


def patient(get):
    """A function that waits for a message, however short the suite wants to."""
    return lambda timeout=None: get(timeout=LIMIT)


class GoKernelTests(jkt.KernelTests):
    """The suite's own tests, with cells of Go."""

    language_name = "go"
    file_extension = ".go"
    code_hello_world = '%%\nfmt.Println("hello, world")'
    code_stderr = '%%\nfmt.Fprintln(os.Stderr, "oops")'
    completion_samples = [
        {"text": "%%\nfmt.Printl", "matches": {"Println", "Fprintln", "Sprintln"}},
        {"text": "func f() { strings.TrimSp"},
    ]
    complete_code_samples = ["func f() int { return 1 }", "%%\nfmt.Println(1)", "!ls", "%%bash\nif true; then"]
    incomplete_code_samples = ["func f() {", "%%\nfor {", "var s = `a", "%%\nfmt.Println("]
    invalid_code_samples = ["func 1() {}", "%%\n}", 'var s = "a\nvar t = 1']
    code_page_something = "%help"
    code_generate_error = '%%\npanic("boom")'
    code_execute_result = [{"code": "%%\n6 * 7", "result": "42"}]
    code_display_data = [{"code": "%ls", "mime": "text/html"}, {"code": "%version", "mime": "text/markdown"}]
    code_history_pattern = "*6 * 7*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = 'import "fmt"\n%%\nfmt.Println'
    code_clear_output = '%%\nfmt.Print("\\x1b[H\\x1b[2J")'

    @classmethod
    def setUpClass(cls):
        cls.km, cls.kc = start_new_kernel(kernel_name=cls.kernel_name, startup_timeout=LIMIT)
        cls.kc.get_shell_msg = patient(cls.kc.get_shell_msg)
        iopub = cls.kc.iopub_channel
        iopub.get_msg = patient(jkt.ensure_sync(iopub.get_msg))

    def flush_channels(self):
        """The suite waits 0.1 s for earlier messages; they have come once a later request is done."""
        request = self.kc.kernel_info()
        while True:
            message = self.kc.iopub_channel.get_msg()
            jkt.validate_message(message)
            if message["parent_header"].get("msg_id") == request and message["content"].get("execution_state") == "idle":
                break
        while self.kc.get_shell_msg()["parent_header"].get("msg_id") != request:
            pass


class Result(unittest.TestResult):
    """Remembers what became of each test. A failed part of a test fails it."""

    def __init__(self):
        super().__init__()
        self.of = {}

    @staticmethod
    def name(test):
        return getattr(test, "_testMethodName", str(test))

    def addSuccess(self, test):
        self.of.setdefault(self.name(test), "ok")

    def addFailure(self, test, err):
        self.of[self.name(test)] = f"{err[0].__name__}: {err[1]}"

    addError = addFailure

    def addSkip(self, test, reason):
        self.of[self.name(getattr(test, "test_case", test))] = f"skipped: {reason}"

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def main():
    GoKernelTests.kernel_name = sys.argv[1]
    result = Result()
    unittest.defaultTestLoader.loadTestsFromTestCase(GoKernelTests).run(result)
    print(json.dumps(result.of))


main()
