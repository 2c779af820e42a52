package main

import "testing"

func TestPlatform(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    submitOptions
		gpu  bool
		want string
	}{
		{name: "cluster without GPUs", want: ""},
		{name: "the login node's GPU does not count", gpu: true, want: ""},
		{name: "cluster with GPUs", o: submitOptions{GPUs: gpus{count: 2}}, want: "cuda"},
		{name: "asked for", o: submitOptions{GPUs: gpus{count: 2}, Platform: "cpu"}, want: "cpu"},
		{name: "here", o: submitOptions{Local: true, Tasks: 1}, want: ""},
		{name: "here, with a GPU", o: submitOptions{Local: true, Tasks: 1}, gpu: true, want: "cuda"},
		{name: "here, several ranks train on CPUs", o: submitOptions{Local: true, Tasks: 2}, gpu: true, want: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.o.platform(func() bool { return tc.gpu }); got != tc.want {
				t.Errorf("platform = %q, want %q", got, tc.want)
			}
		})
	}
}
