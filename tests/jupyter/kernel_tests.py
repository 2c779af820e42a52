"""jupyter_kernel_test for Go kernels.

Usage: kernel_tests.py KERNEL

Prints one JSON object: {"name of a test": "ok" or the reason why it failed, or was skipped}.
"""

import json
import sys
import unittest

import jupyter_kernel_test as jkt


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

    def get_non_kernel_info_reply(self, timeout=None):
        """The suite waits for ever where a kernel does not answer."""
        return super().get_non_kernel_info_reply(timeout=timeout or 30)


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
