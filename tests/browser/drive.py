"""Drive JupyterLab in a headless Chromium, as a user would, with commands from standard input.

Usage: drive.py CHROMIUM URL FOLDER

Each line of standard input is a command: {"do": NAME, ...its arguments}. Each line of standard output
is an answer: {"value": ...} or {"error": text}. Screenshots go to FOLDER. The browser ends at the end
of standard input.
"""

import json
import os
import sys

from playwright.sync_api import sync_playwright

CELL = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-CodeCell"
OUTPUTS = ".jp-OutputArea-output"
# What is immediate on an idle machine may take minutes on a busy one.
PAGE_LIMIT = 300_000


class Lab:
    """A page with JupyterLab."""

    def __init__(self, page, url, folder):
        self.page, self.url, self.folder = page, url, folder
        page.set_default_timeout(PAGE_LIMIT)

    def open(self, path):
        """Open a notebook and wait until its kernel is ready."""
        self.page.goto(f"{self.url}/lab/tree/{path}")
        self.ready()

    def reload(self):
        """Reload the page; the kernel keeps running."""
        self.page.reload()
        self.ready()

    def ready(self):
        """Wait until the notebook and its kernel are ready.

        Before that, JupyterLab loses input, or asks for a kernel.
        """
        self.page.locator(CELL).first.wait_for()
        self.page.locator(".jp-StatusBar-TextItem", has_text="(gonbatch) | Idle").first.wait_for()

    def menu(self, path):
        """Choose an entry of the menu bar, such as ["Run", "Run All Cells"]."""
        self.page.locator(f".lm-MenuBar-itemLabel:text-is('{path[0]}')").click()
        for depth, label in enumerate(path[1:]):
            item = self.page.locator(f".lm-Menu .lm-Menu-itemLabel:text-is('{label}')").last
            item.hover() if depth < len(path) - 2 else item.click()

    def run(self, code):
        """Type a cell below the last code cell, run it, and return its index among the code cells."""
        cells = self.page.locator(CELL)
        count = cells.count()
        last = cells.nth(count - 1)
        if last.locator(".cm-content").inner_text().strip() or last.locator(OUTPUTS).count():
            last.locator(".jp-InputPrompt").click()
            self.page.keyboard.press("Escape")
            self.page.keyboard.press("b")
            self.page.wait_for_function("([s, n]) => document.querySelectorAll(s).length > n", arg=[CELL, count])
            last = cells.nth(cells.count() - 1)
            count += 1
        last.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")
        return count - 1

    def count(self):
        """Return the number of code cells in the notebook."""
        return self.page.locator(CELL).count()

    def ended(self, cell, seconds):
        """Wait until a cell has run."""
        # While a cell waits or runs, its prompt is [*].
        self.page.wait_for_function(
            """([selector, i]) => {
                const prompt = document.querySelectorAll(selector)[i].querySelector('.jp-InputPrompt');
                return /\\[\\d+\\]/.test(prompt.textContent);
            }""",
            arg=[CELL, cell],
            timeout=seconds * 1000,
        )

    def shows(self, cell, text, seconds):
        """Wait until the output of a cell contains the text."""
        self.page.wait_for_function(
            """([selector, outputs, i, text]) => Array.from(document.querySelectorAll(selector)[i].querySelectorAll(outputs))
                .some(output => output.innerText.includes(text))""",
            arg=[CELL, OUTPUTS, cell, text],
            timeout=seconds * 1000,
        )

    def output(self, cell):
        """Return the text that a cell shows."""
        outputs = self.page.locator(CELL).nth(cell).locator(OUTPUTS)
        return "\n".join(outputs.nth(i).inner_text() for i in range(outputs.count()))

    def find(self, cell, selector):
        """Return how many elements of a cell's output match a CSS selector."""
        return self.page.locator(CELL).nth(cell).locator(f"{OUTPUTS} {selector}").count()

    def save(self):
        """Save the notebook, as Ctrl+S does."""
        self.page.keyboard.press("Control+s")
        self.page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")

    def overflow(self, cell):
        """Return how many pixels too wide a cell's output is."""
        outputs = self.page.locator(CELL).nth(cell).locator(OUTPUTS)
        return max(outputs.nth(i).evaluate("e => e.scrollWidth - e.clientWidth") for i in range(outputs.count()))

    def resize(self, width, height):
        """Change the size of the window."""
        self.page.set_viewport_size({"width": width, "height": height})

    def screenshot(self, name, cell=None):
        """Save a picture of the page, or of one cell, and return its path."""
        path = os.path.join(self.folder, name + ".png")
        if cell is None:
            self.page.screenshot(path=path)
        else:
            picture = self.page.locator(CELL).nth(cell)
            picture.scroll_into_view_if_needed()
            picture.screenshot(path=path)
        return path


def answer(lab, line):
    """Run a command and return its answer."""
    command = json.loads(line)
    name = command.pop("do")
    try:
        return {"value": getattr(lab, name)(**command)}
    except Exception as problem:  # The test decides what a failure means.
        try:
            lab.page.screenshot(path=os.path.join(lab.folder, "error.png"))
        except Exception as worse:
            problem = f"{problem}\nand no screenshot: {worse}"
        return {"error": f"{name} {command}: {problem}"}


def main():
    chromium, url, folder = sys.argv[1:]
    with sync_playwright() as playwright:
        # No sandbox: tests run as root, and open only pages of their own server.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        lab = Lab(page, url, folder)
        print(json.dumps({"value": browser.version}), flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(lab, line)), flush=True)
        browser.close()


main()
