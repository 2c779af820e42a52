module poems.example/poems

go 1.24
