package step

import (
	"testing"

	"github.com/gomlx/gomlx/ml/train"
)

func TestWeightOf(t *testing.T) {
	weights := map[string]bool{"/w": true, "/a/w": true, "/a/w_1": true, "/b/a/w": true, "/a/w_1st": true, "/a/x_momentum": true}
	tests := map[string]string{
		"/AdamOptimizer/a/w_1st_moment":                  "/a/w",
		"/AdamOptimizer/a/w_1_1st_moment":                "/a/w_1",
		"/AdamOptimizer/b/a/w_2nd_moment":                "/b/a/w",
		"/AdamOptimizer/a/w_1st_1st_moment":              "/a/w_1st",
		"/AdamOptimizer/w_1st_moment":                    "/w",
		"/optimizers/sgd/a/w_momentum":                   "/a/w",
		"/optimizers/sgd/a/#updates":                     "",
		"/optimizers/sgd/a/x_momentum_momentum":          "/a/x_momentum",
		"/a/x_momentum":                                  "",
		"/optimizers/average/a/x_momentum":               "",
		"/optimizers/average/a/w_1":                      "",
		"/AdamOptimizer/step":                            "",
		"/AdamOptimizer/a/w":                             "",
		"/AdamOptimizer/a/w_more/x":                      "",
		"/a/w_1":                                         "",
		"/a/w":                                           "",
		"/global_step":                                   "",
		"/optimizers/learning_rate":                      "",
		"/" + train.AccumulatedGradientsScope + "/a/w_1": "",
		"/AdamOptimizer/c/w_1st_moment":                  "/w",
		"/generator/AdamOptimizer/a/w_1st_moment":        "/a/w",
	}
	for state, weight := range tests {
		if got, ok := weightOf(state, weights); ok != (weight != "") || got != weight {
			t.Errorf("%s: %v, %q, want %q", state, ok, got, weight)
		}
	}
}
