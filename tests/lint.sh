#!/bin/bash
# lint.sh    what a change must pass before it is committed: gofmt, go vet and, where it is installed, golangci-lint.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  exit 1
fi
go vet ./...
if command -v golangci-lint >/dev/null; then
  golangci-lint run
else
  echo "lint: golangci-lint is not installed: only gofmt and go vet ran" >&2
fi
