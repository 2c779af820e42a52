module example.com/cmath

go 1.24
