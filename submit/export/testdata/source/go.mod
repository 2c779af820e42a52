module gonbatch

go 1.26.5

require github.com/google/go-cmp v0.7.0

require github.com/mattn/go-isatty v0.0.20 // indirect

tool golang.org/x/tools/cmd/goimports
