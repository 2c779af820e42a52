package sharedlib

// CheckFor and OwnGLibC are for tests with other versions of glibc.
var (
	CheckFor = checkFor
	OwnGLibC = ownGLibC
)
