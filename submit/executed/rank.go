package executed

import _ "embed"

// RankScript becomes the program of a rank: rank 0's by Attach, with the submit command that lies beside the script.
//
//go:embed rank.sh
var RankScript []byte
