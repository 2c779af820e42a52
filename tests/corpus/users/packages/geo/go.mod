module example.org/geo

go 1.24
