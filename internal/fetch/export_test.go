package fetch

// ExtractZip is for tests with damaged archives.
var ExtractZip = extractZip
