module loom

go 1.21
