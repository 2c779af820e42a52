package stage

import "testing"

func TestName(t *testing.T) {
	for _, tc := range []struct{ name, notebook, want string }{
		{"notebook's", "a/mnist.ipynb", "mnist"},
		{"newline in the notebook's", "a\nb.ipynb", "a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (Notebook{Path: tc.notebook}).Name(); got != tc.want {
				t.Errorf("name = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStepDir(t *testing.T) {
	for _, tc := range []struct{ name, dir, want string }{
		{"none", "", ""}, {"absolute", "/a", "/a"}, {"home", "~", "/home/ada"}, {"below home", "~/x", "/home/ada/x"},
		{"another's home is not ours", "~bob", "/nb/~bob"}, {"relative", "../x", "/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := cellDir(tc.dir, "/nb", "/home/ada"); got != tc.want {
				t.Errorf("stepDir(%q) = %q, want %q", tc.dir, got, tc.want)
			}
		})
	}
}
